package mcpclient_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// listing starts a server with a tools array and returns what is offered.
func listing(t *testing.T, tools string, change func(*mcpclient.Options)) *provider.Offer {
	t.Helper()
	o := fault(t, "TOOLS="+tools)
	if change != nil {
		change(&o)
	}
	return start(t, o).ready()
}

func TestDefinitionsPassUnchanged(t *testing.T) {
	yes, no := true, false
	offer := listing(t, `[{"name":"find.it","title":"Find","description":"a < b & \u00e9","inputSchema":{"type": "object","properties":{"z":{"maximum":12345678901234567890},"a":{}}},`+
		`"outputSchema":{"type":"object","z":1,"a":2},"annotations":{"title":"x","readOnlyHint":true,"destructiveHint":false},`+
		`"icons":[{"src":"data:"}],"_meta":{"vendor/x":{"b":1,"a":2},"io.modelcontextprotocol/related":{}}}]`, nil)
	want := []tool.Definition{{
		Name: tool.FullName("mcp", "kb", "find.it"), OwnName: "find.it", Source: tool.SourceMCP, SourceName: "kb", Coldness: tool.External,
		Title: "Find", Description: "a < b & é",
		InputSchema:  json.RawMessage(`{"type": "object","properties":{"z":{"maximum":12345678901234567890},"a":{}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","z":1,"a":2}`),
		Annotations:  tool.Annotations{ReadOnly: &yes, Destructive: &no, ParallelSafe: &yes},
		Icons:        json.RawMessage(`[{"src":"data:"}]`),
		Meta:         json.RawMessage(`{"vendor/x":{"b":1,"a":2}}`),
		Timeout:      60e9,
	}}
	if diff := cmp.Diff(want, offer.Tools); diff != "" {
		t.Error(diff)
	}
}

func TestAMalformedDefinitionIsRefusedAlone(t *testing.T) {
	for name, c := range map[string]struct{ definition, reason string }{
		"no schema":                     {`{"name":"bad"}`, "inputSchema is missing"},
		"a schema of another type":      {`{"name":"bad","inputSchema":{"type":"string"}}`, `type "string" instead of "object"`},
		"a schema that is no object":    {`{"name":"bad","inputSchema":[]}`, "inputSchema is missing or no JSON object"},
		"an output schema that is none": {`{"name":"bad","inputSchema":{},"outputSchema":1}`, "outputSchema is missing or no JSON object"},
		"a description that is no text": {`{"name":"bad","inputSchema":{},"description":{}}`, "description is not a string"},
		"annotations that are none":     {`{"name":"bad","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}`, "annotations cannot be read"},
		"icons that are none":           {`{"name":"bad","inputSchema":{},"icons":{}}`, "icons is not an array"},
		"it runs only as a task":        {`{"name":"bad","inputSchema":{},"execution":{"taskSupport":"required"}}`, "only as a task"},
		"a header that is no name":      {`{"name":"bad","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}}`, "no header name"},
		"a header on an array":          {`{"name":"bad","inputSchema":{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}}`, "no header can hold"},
		"a header twice":                {`{"name":"bad","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}}`, "not unique"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offer := listing(t, `[{"name":"good","inputSchema":{}},`+c.definition+`]`, nil)
			if _, refused := offer.Refused["mcp__kb__good"]; refused || offer.Tools[0].OwnName != "good" {
				t.Error("the good tool is gone")
			}
			if got := offer.Refused["mcp__kb__bad"]; !strings.Contains(got, c.reason) {
				t.Errorf("the reason is %q, want %q in it", got, c.reason)
			}
		})
	}
	t.Run("what has no name is left out", func(t *testing.T) {
		offer := listing(t, `[{"inputSchema":{}},null,7,{"name":"","inputSchema":{}},{"name":["x"],"inputSchema":{}},{"name":"good","inputSchema":{}}]`, nil)
		if len(offer.Tools) != 1 || len(offer.Refused) != 0 {
			t.Errorf("offered %+v, refused %v", offer.Tools, offer.Refused)
		}
	})
}

func TestTwoToolsOfOneName(t *testing.T) {
	t.Run("both are refused", func(t *testing.T) {
		offer := listing(t, `[{"name":"a","inputSchema":{}},{"name":"a","description":"other","inputSchema":{}},{"name":"b","inputSchema":{}}]`, nil)
		if len(offer.Refused) != 1 || !strings.Contains(offer.Refused["mcp__kb__a"], "two tools") {
			t.Errorf("refused %v", offer.Refused)
		}
	})
	t.Run("the same one listed twice is one", func(t *testing.T) {
		offer := listing(t, `[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{}}]`, nil)
		if len(offer.Refused) != 0 || len(offer.Tools) != 1 {
			t.Errorf("refused %v, %d tools", offer.Refused, len(offer.Tools))
		}
	})
}

func TestNamesAndSelection(t *testing.T) {
	text := func(s string) *string { return &s }
	const tools = `[{"name":"create_issue","inputSchema":{}},{"name":"delete_issue","inputSchema":{}},{"name":"a/b","inputSchema":{}}]`
	for name, c := range map[string]struct {
		change func(*mcpclient.Options)
		want   []string
	}{
		"by default everything, under the server's name": {func(*mcpclient.Options) {},
			[]string{"mcp__kb__create_issue", "mcp__kb__delete_issue", tool.FullName("mcp", "kb", "a/b")}},
		"an empty prefix keeps valid names": {func(o *mcpclient.Options) { o.Prefix = text("") }, []string{"create_issue", "delete_issue", tool.FullName("a/b")}},
		"a prefix of the operator's":        {func(o *mcpclient.Options) { o.Prefix = text("x"); o.Include = []string{"create*"} }, []string{"x__create_issue"}},
		"exclude wins":                      {func(o *mcpclient.Options) { o.Include = []string{"*"}; o.Exclude = []string{"delete_*", "a/?"} }, []string{"mcp__kb__create_issue"}},
		"an include of nothing":             {func(o *mcpclient.Options) { o.Include = []string{} }, nil},
		"a star takes a slash too":          {func(o *mcpclient.Options) { o.Include = []string{"*b"} }, []string{tool.FullName("mcp", "kb", "a/b")}},
		"a pattern is the whole name": {func(o *mcpclient.Options) {
			o.Include = []string{"issue", "*_issu?"}
			o.Exclude = []string{"delete_issue"}
		}, []string{"mcp__kb__create_issue"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range listing(t, tools, c.change).Tools {
				got = append(got, d.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		o    *mcpclient.Options
		want string
	}{
		"none":               {nil, "no options"},
		"no name":            {&mcpclient.Options{URL: "http://x"}, "name is empty"},
		"neither way":        {&mcpclient.Options{Name: "a"}, "exactly one of command and url"},
		"both ways":          {&mcpclient.Options{Name: "a", URL: "http://x", Command: []string{"x"}}, "exactly one of command and url"},
		"an empty program":   {&mcpclient.Options{Name: "a", Command: []string{""}}, "command[0] is empty"},
		"a url without host": {&mcpclient.Options{Name: "a", URL: "localhost:3000"}, "is not an http or https address"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mcpclient.New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}
