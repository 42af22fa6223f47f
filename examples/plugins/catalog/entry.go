package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
)

const (
	maxLine = 4 << 20   // bytes of one tool
	maxRead = 512 << 20 // bytes of a catalog after decompression
	maxName = 64        // what function calling allows
)

// entry is one line of a catalog.
type entry struct {
	Name        string          `json:"name" jsonschema:"name of the tool" minLength:"1"`
	Description string          `json:"description,omitempty" jsonschema:"what the tool does"`
	Parameters  json.RawMessage `json:"parameters,omitempty" jsonschema:"JSON Schema of type object; absent: no arguments"`
	Source      string          `json:"source,omitempty" jsonschema:"where the tool comes from"`
}

func (e entry) tool() pluginsdk.Tool {
	if len(e.Parameters) == 0 {
		e.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	o := &pluginsdk.ToolOptions{Toolset: e.Source, ReadOnly: true, Idempotent: true, ParallelSafe: true, OpenWorld: new(false), Coldness: pluginsdk.External}
	name := toolName(e.Name)
	if name != e.Name {
		o.Title = e.Name
	}
	return pluginsdk.NewRawTool(name, e.Description, e.Parameters, echo, o)
}

// toolName makes a name that every agent can call: foreign characters become "_" and what is too long is cut; a name that
// had to be changed ends in a hash of the original, so that it stays unique and the same.
func toolName(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if clean == s && len(s) <= maxName {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return clean[:min(len(clean), maxName-len(suffix))] + suffix
}

// readFile reads the catalog at path, keeping the sources named (none: all) and at most limit tools (0: all).
func readFile(ctx context.Context, path string, sources []string, limit int) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("%s is no gzip file: %w", path, err)
		}
		defer z.Close()
		r = z
	}
	entries, err := read(ctx, r, sources, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}

func read(ctx context.Context, r io.Reader, sources []string, limit int) ([]entry, error) {
	bounded := &io.LimitedReader{R: r, N: maxRead + 1}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var entries []entry
	for n := 1; lines.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Name == "" {
			return nil, fmt.Errorf("line %d: the tool has no name", n)
		}
		if len(sources) > 0 && !slices.Contains(sources, e.Source) {
			continue
		}
		entries = append(entries, e)
		if limit > 0 && len(entries) == limit {
			return entries, nil
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if bounded.N == 0 {
		return nil, errors.New("the catalog is larger than 512 MiB")
	}
	return entries, nil
}
