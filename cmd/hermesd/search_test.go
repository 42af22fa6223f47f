package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/search"
)

var update = flag.Bool("update", false, "write the expected output anew")

// An explanation is for people: what of the query each tool met, in which of its parts, and what came of it.
func TestAnExplanationReadsAsATable(t *testing.T) {
	engine, err := search.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	engine.Update([]search.Document{
		{Name: "mcp__tracker__create_ticket", OwnName: "create_ticket", Source: "tracker", Description: "Creates a ticket for a bug or a task."},
		{Name: "mcp__tracker__list_tickets", OwnName: "list_tickets", Source: "tracker", Description: "Lists the tickets of a project."},
		{Name: "mcp__shop__refund_payment", OwnName: "refund_payment", Source: "shop", Description: "Gives a customer the money of a payment back."},
		{Name: "mcp__mail__send", OwnName: "send", Source: "mail", Description: "Sends a mail."},
	})
	queries := []struct {
		text    string
		usage   float64
		meaning float64
	}{{"create a ticket about \"late payments\"", 0, 0}, {"mcp__mail__send", .5, .25}, {"launch a satellite", 0, 0}, {"lists the tick", 0, 0}}
	type result struct {
		Query   string   `json:"query"`
		Hint    string   `json:"hint,omitempty"`
		Sources []source `json:"available_sources,omitempty"`
	}
	var results []result
	var groups []search.Group
	for _, q := range queries {
		query := search.Query{Text: q.text, Limit: 2, Explain: true}
		if q.usage > 0 {
			query.Usage = func(string) float64 { return q.usage }
			query.Meaning = func(string) (float64, bool) { return q.meaning, true }
		}
		results = append(results, result{q.text, "no tools are behind this search", nil})
		groups = append(groups, engine.Corpus().Scope(nil).Search(query))
	}
	answer := &adminpb.SearchResponse{}
	if answer.Result, err = json.Marshal(map[string]any{"results": results, "tools": map[string]any{
		"mcp__tracker__create_ticket": map[string]string{"source_name": "tracker"}, "mcp__tracker__list_tickets": map[string]string{"source_name": "tracker"},
		"mcp__shop__refund_payment": map[string]string{"source_name": "shop"}, "mcp__mail__send": map[string]string{"source_name": "mail"},
	}}); err != nil {
		t.Fatal(err)
	}
	if answer.Explanation, err = json.Marshal(groups); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&cli{out: &out}).printSearch(answer); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/explanation.txt"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("(-want +got, rewrite with -update):\n%s", d)
	}
}

func TestASearchThatFindsNothingListsTheSourcesAndWhyTheyAreDown(t *testing.T) {
	const sources = `"available_sources": [{"name": "mail", "tool_count": 1, "unavailable": "connection\u001b refused"}, {"name": "tracker", "tool_count": 5}]`
	const listed = "    mail     1 tools  unavailable: connection\\x1b refused\n    tracker  5 tools  \n"
	tests := map[string]struct{ groups, explanation, want string }{
		"nothing": {`{"query": "q", "matches": [], "hint": "h", ` + sources + `}`, "",
			"q\n  no match; no word of the query is in a tool. Try service plus action; the sources are:\n" + listed},
		"nothing near": {`{"query": "q", "matches": ["send"], "confidence": "weak", "hint": "h", ` + sources + `}`, "",
			"q\n  nothing fits well; these are the nearest:\n  1. send  mail  Sends.\n  the sources are:\n" + listed},
		"nothing, explained": {`{"query": "q", "matches": [], "hint": "h", ` + sources + `}`, `[{"hits": []}]`,
			"q\n  no match; no word of the query is in a tool. Try service plus action; the sources are:\n" + listed},
		"no sources": {`{"query": "q", "matches": [], "hint": "no tools are behind this search"}`, "",
			"q\n  no match. no tools are behind this search\n"},
		"something": {`{"query": "q", "matches": ["send"]}`, "", "q\n  1. send  mail  Sends.\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			answer := &adminpb.SearchResponse{
				Result:      []byte(`{"results": [` + test.groups + `], "tools": {"send": {"source_name": "mail", "description": "Sends."}}}`),
				Explanation: []byte(test.explanation),
			}
			if err := (&cli{out: &out}).printSearch(answer); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, out.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestAnExplanationThatCannotBeReadSaysSo(t *testing.T) {
	for name, raw := range map[string]string{"no JSON": "{", "another shape": `{"a":1}`, "too few groups": "[]"} {
		t.Run(name, func(t *testing.T) {
			answer := &adminpb.SearchResponse{Result: []byte(`{"results":[{"query":"q"}]}`), Explanation: []byte(raw)}
			if err := (&cli{out: &bytes.Buffer{}}).printSearch(answer); err == nil {
				t.Error("it is printed")
			}
		})
	}
}
