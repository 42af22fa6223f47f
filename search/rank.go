package search

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// RankOptions configure Rank. The zero value works.
type RankOptions struct {
	Limit    int                 // hits for each query; default 10
	Synonyms map[string][]string // as in Options
}

// maxLine bounds one line of a catalog or of queries.
const maxLine = 16 << 20

// ReadCatalog reads a catalog of one tool a line: {"name","description","parameters":{JSON Schema},"source"}, optionally
// with "own_name" and "keywords".
func ReadCatalog(r io.Reader) ([]Document, error) {
	var docs []Document
	err := readLines(r, "catalog", func(line []byte) error {
		var d struct {
			Name        string          `json:"name"`
			OwnName     string          `json:"own_name"`
			Source      string          `json:"source"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Keywords    []string        `json:"keywords"`
		}
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		if d.Name == "" {
			return fmt.Errorf("a tool has no name")
		}
		docs = append(docs, Document(d))
		return nil
	})
	return docs, err
}

func readLines(r io.Reader, what string, read func([]byte) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := read(line); err != nil {
			return fmt.Errorf("%s line %d: %w", what, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// ranking is one line of the answer.
type rankedLine struct {
	Query   string        `json:"query"`
	Matches []rankedMatch `json:"matches"`
	Weak    bool          `json:"weak"`
	Micros  float64       `json:"micros"`
}

type rankedMatch struct {
	Name string `json:"name"`
	Weak bool   `json:"weak"`
}

// Rank asks the queries ({"query": …} a line; other keys are ignored) of a catalog and writes one line for each, in
// order: {"query","matches":[{"name","weak"}],"weak","micros"}, where micros is the time of the search. The base index
// is complete before the first query.
func Rank(ctx context.Context, w io.Writer, catalog, queries io.Reader, opts *RankOptions) (err error) {
	if opts == nil {
		opts = &RankOptions{}
	}
	limit := opts.Limit
	if limit <= 0 {
		limit = 10
	}
	docs, err := ReadCatalog(catalog)
	if err != nil {
		return err
	}
	e, err := New(&Options{Synonyms: opts.Synonyms})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}()
	e.Update(docs)
	if err := e.Ready(ctx); err != nil {
		return fmt.Errorf("build the index: %w", err)
	}
	scope := e.Corpus().Scope(nil)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err = readLines(queries, "queries", func(line []byte) error {
		var q struct {
			Query string `json:"query"`
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		g := scope.Search(Query{Text: q.Query, Limit: limit})
		took := time.Since(start)
		answer := rankedLine{Query: q.Query, Matches: []rankedMatch{}, Weak: g.Weak, Micros: float64(took.Nanoseconds()) / 1e3}
		for _, h := range g.Hits {
			answer.Matches = append(answer.Matches, rankedMatch{h.Name, g.Weak})
		}
		return enc.Encode(answer)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
