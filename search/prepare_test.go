package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// content is the terms of an entry with their counts, by themselves.
func content(e *entry, v *vocabulary) (all map[string]packed, name, source []string) {
	all = map[string]packed{}
	for _, t := range e.terms {
		all[v.term(t.term)] = t.freq
	}
	for _, t := range e.nameSeq {
		name = append(name, v.term(t))
	}
	for _, t := range e.srcSeq {
		source = append(source, v.term(t))
	}
	return all, name, source
}

func TestManyDocumentsPreparedTogetherAreAsIfPreparedAlone(t *testing.T) {
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	docs := make([]Document, 2*prepareTogether+1)
	for i := range docs {
		docs[i] = Document{
			Name: fmt.Sprintf("mcp__s%d__do_thing_%d", i%7, i), Source: fmt.Sprint("s", i%7),
			Description: fmt.Sprintf("Does thing %c%c to a common object. It is the %dth.", 'a'+i%26, 'a'+i/26%26, i),
			Parameters:  json.RawMessage(fmt.Sprintf(`{"properties":{"param%d":{"description":"what to do"}}}`, i%50)),
		}
	}
	e.Update(docs)
	c := e.Corpus()
	if len(c.docs) != len(docs) {
		t.Fatalf("%d entries", len(c.docs))
	}
	for i := range docs {
		at, ok := slices.BinarySearchFunc(c.docs, docs[i].Name, func(e *entry, name string) int { return strings.Compare(e.name, name) })
		if !ok {
			t.Fatalf("%s is missing", docs[i].Name)
		}
		got := c.docs[at]
		if !slices.IsSortedFunc(got.terms, func(a, b posting) int { return int(a.term) - int(b.term) }) {
			t.Fatalf("the terms of %s are not in order", got.name)
		}
		alone := newVocabulary()
		want := newPreparer(e.lex, alone).prepare(&docs[i], 0)
		gotAll, gotName, gotSource := content(got, c.vocab)
		wantAll, wantName, wantSource := content(want, alone)
		if d := cmp.Diff(wantAll, gotAll) + cmp.Diff(wantName, gotName) + cmp.Diff(wantSource, gotSource); d != "" {
			t.Fatalf("%s: %s", got.name, d)
		}
	}
}
