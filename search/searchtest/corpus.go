package searchtest

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/search"
)

//go:embed corpus/*.txt
var corpusFiles embed.FS

// Corpus returns our own catalog and its judged queries, written for this repository.
func Corpus() (*Set, error) {
	s := &Set{Name: "own"}
	known := map[string]bool{}
	source := ""
	err := eachLine("corpus/tools.txt", func(line string) error {
		if rest, ok := strings.CutPrefix(line, "== "); ok {
			source = rest
			return nil
		}
		d, err := parseTool(source, line)
		if err == nil && known[d.Name] {
			err = fmt.Errorf("%s stands twice", d.Name)
		}
		known[d.Name] = true
		s.Docs = append(s.Docs, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	kind := ""
	err = eachLine("corpus/queries.txt", func(line string) error {
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			kind = line[1 : len(line)-1]
			return nil
		}
		q, err := parseQuery(line)
		if err != nil {
			return err
		}
		q.Kind = kind
		for _, name := range q.Relevant {
			if !known[name] {
				return fmt.Errorf("no tool is called %s", name)
			}
		}
		s.Queries = append(s.Queries, q)
		return nil
	})
	return s, err
}

func fullName(source, name string) string { return "mcp__" + source + "__" + name }

func parseTool(source, line string) (search.Document, error) {
	columns := strings.Split(line, "|")
	if source == "" || len(columns) < 3 || len(columns) > 4 {
		return search.Document{}, fmt.Errorf("%q is no tool of a source", line)
	}
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	properties := map[string]any{}
	for p := range strings.SplitSeq(columns[2], ";") {
		name, text, _ := strings.Cut(p, ":")
		if name = strings.TrimSpace(name); name != "" {
			properties[name] = map[string]any{"type": "string", "description": strings.TrimSpace(text)}
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		return search.Document{}, err
	}
	d := search.Document{
		Name: fullName(source, columns[0]), OwnName: columns[0], Source: source, Description: columns[1], Parameters: schema,
	}
	if len(columns) == 4 {
		d.Keywords = strings.Fields(columns[3])
	}
	return d, nil
}

func parseQuery(line string) (Query, error) {
	text, answer, ok := strings.Cut(line, "=>")
	if !ok {
		return Query{}, fmt.Errorf("%q has no =>", line)
	}
	q := Query{Query: strings.TrimSpace(text)}
	for need := range strings.SplitSeq(answer, ",") {
		var group []string
		for tool := range strings.SplitSeq(need, "|") {
			if tool = strings.TrimSpace(tool); tool == "" {
				continue
			}
			source, name, ok := strings.Cut(tool, "/")
			if !ok {
				return Query{}, fmt.Errorf("%q is not source/name", tool)
			}
			group = append(group, fullName(source, name))
		}
		if len(group) > 0 {
			q.Groups = append(q.Groups, group)
			q.Relevant = append(q.Relevant, group...)
		}
	}
	return q, nil
}

// eachLine calls read with every line of an embedded file that is neither blank nor a comment.
func eachLine(name string, read func(string) error) error {
	f, err := corpusFiles.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := read(line); err != nil {
			return fmt.Errorf("%s line %d: %w", name, n, err)
		}
	}
	return sc.Err()
}
