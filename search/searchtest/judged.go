// Package searchtest judges rankings of tools: readers for catalogs and judged queries, the usual measures, a corpus of
// our own, and the table that `make bench-search` prints.
package searchtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hermesd/hermesd/search"
)

// DataEnv names the folder with judged queries of other people's tools. None of that data is in this repository.
const DataEnv = "HERMESD_EVAL_DATA"

// Query is a question with its judgement.
type Query struct {
	Query    string     `json:"query"`
	Relevant []string   `json:"relevant"` // empty: no tool answers
	Groups   [][]string `json:"groups"`   // each is one need, met by any one of its members; none: one need a name
	Kind     string     `json:"kind"`
}

// Needs returns the needs of a query, each with the tools that meet it.
func (q *Query) Needs() [][]string {
	if len(q.Groups) > 0 {
		return q.Groups
	}
	needs := make([][]string, len(q.Relevant))
	for i := range q.Relevant {
		needs[i] = q.Relevant[i : i+1]
	}
	return needs
}

// Set is a catalog with its judged queries.
type Set struct {
	Name    string
	Docs    []search.Document
	Queries []Query
}

// LoadSet reads catalog.jsonl(.gz) and queries.jsonl(.gz) from a folder. A set without queries is legal.
func LoadSet(dir string) (*Set, error) {
	s := &Set{Name: filepath.Base(dir)}
	err := readFile(filepath.Join(dir, "catalog.jsonl"), func(r io.Reader) (err error) {
		s.Docs, err = search.ReadCatalog(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = readFile(filepath.Join(dir, "queries.jsonl"), func(r io.Reader) (err error) {
		s.Queries, err = ReadQueries(r)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return s, nil
}

// ReadQueries reads one judged query a line.
func ReadQueries(r io.Reader) ([]Query, error) {
	var out []Query
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var q Query
		if err := json.Unmarshal(sc.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("queries line %d: %w", n, err)
		}
		out = append(out, q)
	}
	return out, sc.Err()
}

// readFile reads name, or name.gz if that is what there is.
func readFile(name string, read func(io.Reader) error) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		name += ".gz"
		f, err = os.Open(name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		return read(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return read(z)
}
