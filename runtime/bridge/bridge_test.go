package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// outcomes is a pipeline that answers what a test says.
type outcomes []pipeline.Outcome

func (o outcomes) Do(context.Context, []*pipeline.Request) []pipeline.Outcome { return o }

type searcher func(queries []string) ([]search.Group, error)

func (s searcher) Search(_ context.Context, r *bridge.SearchRequest) ([]search.Group, error) {
	return s(r.Queries)
}

func TestASearchThatCannotBeMadeSaysSo(t *testing.T) {
	w := newWorld(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		search bridge.Searcher
		code   tool.Code
	}{
		"no index":        {t.Context(), nil, tool.Internal},
		"a broken index":  {t.Context(), searcher(func([]string) ([]search.Group, error) { return nil, errors.New("s3cret path") }), tool.Internal},
		"a missing group": {t.Context(), searcher(func([]string) ([]search.Group, error) { return nil, nil }), tool.Internal},
		"a caller that gave up": {cancelled, searcher(func([]string) ([]search.Group, error) {
			return nil, context.Canceled
		}), tool.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			b := bridge.New(&bridge.Options{Pipeline: outcomes{}, Search: test.search})
			_, err := b.Search(test.ctx, w.caller(t, settings{}), json.RawMessage(`{"queries":["a"]}`))
			if tool.CodeOf(err) != test.code {
				t.Fatalf("%v", err)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the agent reads what is the operator's: %v", err)
			}
		})
	}
}

func TestASearchTellsOnlyOfWhatTheViewHolds(t *testing.T) {
	w := newWorld(t)
	b := bridge.New(&bridge.Options{Pipeline: outcomes{}, Search: searcher(func(queries []string) ([]search.Group, error) {
		return []search.Group{{Hits: []search.Hit{{Name: "mcp__secret__launch"}, {Name: "web_post"}, {Name: "mcp__kb__search"}, {Name: "gone"}}}}, nil
	})})
	result, err := b.Search(t.Context(), w.caller(t, settings{}), json.RawMessage(`{"queries":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Results []struct{ Matches []string }
		Tools   map[string]any
	}
	if err := json.Unmarshal([]byte(result.Text()), &answer); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"mcp__kb__search"}, answer.Results[0].Matches); d != "" || len(answer.Tools) != 1 {
		t.Errorf("%s", result.Text())
	}
}

func TestASearchAnswerIsBounded(t *testing.T) {
	w := newWorld(t)
	schema, err := json.Marshal(map[string]any{"type": "object", "required": func() (names []string) {
		for i := range 50 {
			names = append(names, fmt.Sprintf("%d%s", i, strings.Repeat("x", 100)))
		}
		return names
	}()})
	if err != nil {
		t.Fatal(err)
	}
	long := w.provider(tool.SourcePlugin, "web", tool.Definition{Name: "long", Description: strings.Repeat("word ", 1000), InputSchema: schema})
	many := []provider.Provider{long}
	for i := range 150 {
		many = append(many, w.provider(tool.SourcePlugin, fmt.Sprintf("p%03d", i), tool.Definition{Name: fmt.Sprintf("t%d", i)}))
	}
	w.catalog.SetProviders(many)
	c := &bridge.Caller{View: w.catalog.Snapshot().View(nil), Shown: external{}}
	result, err := w.bridge.Search(t.Context(), c, json.RawMessage(`{"queries":["word", "zzz"]}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Results []struct {
			AvailableSources []any `json:"available_sources"`
			Hint             string
		}
		Tools map[string]struct {
			Description string
			Required    []string
		}
	}
	if err := json.Unmarshal([]byte(result.Text()), &answer); err != nil {
		t.Fatal(err)
	}
	hit := answer.Tools["long"]
	if n := utf8.RuneCountInString(hit.Description); n > 500 || n < 490 || !strings.HasSuffix(hit.Description, "word…") {
		t.Errorf("a description of %d characters: %q", n, hit.Description)
	}
	if len(hit.Required) != 32 || utf8.RuneCountInString(hit.Required[31]) > 64 {
		t.Errorf("%d required arguments: %q", len(hit.Required), hit.Required)
	}
	if g := answer.Results[1]; len(g.AvailableSources) != 100 || !strings.Contains(g.Hint, "51 more sources") {
		t.Errorf("%d sources, %s", len(g.AvailableSources), g.Hint)
	}
	if _, err := w.bridge.Search(t.Context(), c, json.RawMessage(`{"queries":["`+strings.Repeat("x", 10_000)+`"]}`)); tool.CodeOf(err) != tool.BadRequest {
		t.Errorf("a query of 10,000 characters: %v", err)
	}
}

func TestNoSlotIsLostWhenThePipelineLosesOne(t *testing.T) {
	w := newWorld(t)
	b := bridge.New(&bridge.Options{Pipeline: outcomes{{Result: tool.TextResult("one")}, {}}})
	calls := json.RawMessage(`{"calls":[{"name":"mcp__kb__refresh"},{"name":"mcp__kb__refresh"},{"name":"web_get"}]}`)
	result, err := b.Call(t.Context(), w.caller(t, settings{}), calls)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"results":[{"index":0,"name":"mcp__kb__refresh","response":"one"},` +
		`{"index":1,"name":"mcp__kb__refresh","error":{"code":"internal","message":"mcp__kb__refresh got no answer inside hermesd; it may have run, so look before you repeat it"}},` +
		`{"index":2,"name":"web_get","error":{"code":"internal","message":"web_get got no answer inside hermesd; it may have run, so look before you repeat it"}}],` +
		`"success_count":1,"error_count":2,"total_count":3}`
	if d := cmp.Diff(want, result.Text()); d != "" {
		t.Error(d)
	}
}

func TestASuspendedBatchIsHandedBackWhole(t *testing.T) {
	w := newWorld(t)
	pending := tool.Errorf(tool.ApprovalPending, "waits")
	b := bridge.New(&bridge.Options{Pipeline: outcomes{{Err: pending, Suspended: json.RawMessage(`{"ask":1}`)}}})
	_, err := b.Call(t.Context(), w.caller(t, settings{}), json.RawMessage(`{"name":"mcp__kb__refresh"}`))
	var suspended *bridge.Suspended
	if !errors.As(err, &suspended) || string(suspended.Payload) != `{"ask":1}` {
		t.Errorf("%v", err)
	}
}

func TestNotesReachTheAgentBesideTheResult(t *testing.T) {
	w := newWorld(t)
	own := tool.TextResult("one")
	result, err := bridge.New(&bridge.Options{Pipeline: outcomes{{Result: own, Notes: []string{"the same call failed twice"}}}}).
		Call(t.Context(), w.caller(t, settings{}), json.RawMessage(`{"name":"mcp__kb__refresh"}`))
	if err != nil || result.Text() != "one\nthe same call failed twice" || len(own.Content) != 1 {
		t.Errorf("%v, %v; the tool's own result has %d blocks", result, err, len(own.Content))
	}
	_, err = bridge.New(&bridge.Options{Pipeline: outcomes{{Err: tool.Errorf(tool.ToolFailed, "no"), Notes: []string{"again"}}}}).
		Call(t.Context(), w.caller(t, settings{}), json.RawMessage(`{"name":"mcp__kb__refresh"}`))
	if d := cmp.Diff([]string{"again"}, tool.AsError(err).Extra["notes"]); d != "" {
		t.Error(d)
	}
}

// Guards fault 125368: an endless stream of malformed requests ends.
func TestRefusalsCanBeCountedAndReplaced(t *testing.T) {
	w := newWorld(t)
	var seen []tool.Code
	b := bridge.New(&bridge.Options{Pipeline: outcomes{}, Search: words{}, Refused: func(_ context.Context, c *bridge.Caller, refusal *tool.Error) *tool.Error {
		seen = append(seen, refusal.Code)
		if len(seen) < 3 {
			return nil
		}
		return tool.Errorf(tool.LoopBlocked, "enough")
	}})
	c := w.caller(t, settings{})
	malformed := []func() (*tool.Result, error){
		func() (*tool.Result, error) {
			return b.Call(t.Context(), c, json.RawMessage(`{"calls":[{"name":"web_get","arguments":[]}]}`))
		},
		func() (*tool.Result, error) { return b.Direct(t.Context(), c, "web_get", json.RawMessage(`[]`)) },
		func() (*tool.Result, error) { return b.Describe(t.Context(), c, json.RawMessage(`[]`)) },
		func() (*tool.Result, error) { return b.Search(t.Context(), c, json.RawMessage(`[]`)) },
	}
	var got []tool.Code
	for _, send := range malformed {
		_, err := send()
		got = append(got, tool.CodeOf(err))
	}
	if d := cmp.Diff([]tool.Code{tool.BadRequest, tool.BadRequest, tool.LoopBlocked, tool.LoopBlocked}, got); d != "" || len(seen) != 4 {
		t.Errorf("%d were seen: %s", len(seen), d)
	}
}

func TestACallCarriesWhoCallsAndHow(t *testing.T) {
	w := newWorld(t)
	var got *pipeline.Request
	b := bridge.New(&bridge.Options{Pipeline: recorder(func(r *pipeline.Request) { got = r })})
	c := w.caller(t, settings{})
	c.Attended, c.TraceParent, c.Resume, c.Host = true, "00-1", "token", &provider.Host{}
	for via, send := range map[tool.Via]func() (*tool.Result, error){
		tool.ViaBridge: func() (*tool.Result, error) { return b.Call(t.Context(), c, json.RawMessage(`{"name":"WEB GET"}`)) },
		tool.ViaDirect: func() (*tool.Result, error) { return b.Direct(t.Context(), c, "Web-Get", nil) },
		tool.ViaAdmin: func() (*tool.Result, error) {
			admin := *c
			admin.Via = tool.ViaAdmin
			return b.Direct(t.Context(), &admin, "web_get", nil)
		},
	} {
		if _, err := send(); err != nil {
			t.Fatal(err)
		}
		want := &tool.Call{Agent: "desk", Session: "desk/1", Attended: true, Tool: "web_get", Arguments: json.RawMessage(`{}`), Via: via, TraceParent: "00-1"}
		if d := cmp.Diff(want, got.Call); d != "" || got.Host != c.Host || got.Resume != "token" {
			t.Errorf("%s: resume %q: %s", via, got.Resume, d)
		}
	}
}

type recorder func(*pipeline.Request)

func (r recorder) Do(_ context.Context, reqs []*pipeline.Request) []pipeline.Outcome {
	outs := make([]pipeline.Outcome, len(reqs))
	for i, req := range reqs {
		r(req)
		outs[i].Result = tool.TextResult("done")
	}
	return outs
}

func TestLongNamesAreNotEchoedWhole(t *testing.T) {
	w := newWorld(t)
	name := strings.Repeat("é", 5000)
	for kind, args := range map[string]string{"call": `{"name":"` + name + `"}`, "describe": `{"names":["` + name + `"]}`, "direct " + name: `{}`} {
		text := show(send(t, w, w.caller(t, settings{}), kind, json.RawMessage(args)))
		if len(text) > 1500 || !utf8.ValidString(text) {
			t.Errorf("%.20s: %d bytes", kind, len(text))
		}
	}
}

// FuzzInputs sends anything to every bridge tool: an answer or a clear error, and nothing runs that was not named.
func FuzzInputs(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"queries":["a"]}`, `{"names":"mcp__kb__search"}`, `{"calls":[{"name":"mcp__kb__search","arguments":{"q":"a"}}]}`,
		`{"calls":"[{\"name\":\"web_get\"\n\"arguments\":{}}]"}`, `{"name":"web_get","arguments":"{\"a\":1,}"}`, "\"{\\\"a\\\"", `{"limit":1e999,"query":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	w := newWorld(f)
	c := w.caller(f, settings{})
	f.Fuzz(func(t *testing.T, args []byte) {
		for name, send := range map[string]func(context.Context, *bridge.Caller, json.RawMessage) (*tool.Result, error){
			"search": w.bridge.Search, "describe": w.bridge.Describe, "call": w.bridge.Call,
			"direct": func(ctx context.Context, c *bridge.Caller, args json.RawMessage) (*tool.Result, error) {
				return w.bridge.Direct(ctx, c, "mcp__kb__search", args)
			},
		} {
			input := bytes.Clone(args)
			result, err := send(t.Context(), c, input)
			if !bytes.Equal(input, args) {
				t.Fatalf("%s changed its input", name)
			}
			switch {
			case err != nil && (tool.CodeOf(err) == tool.Internal || err.Error() == ""):
				t.Fatalf("%s: %v", name, err)
			case err == nil && result.Structured != nil && !json.Valid(result.Structured):
				t.Fatalf("%s answered %q", name, result.Structured)
			}
		}
	})
}

func TestTheSameQuestionHasTheSameBytes(t *testing.T) {
	w := newWorld(t)
	for kind, args := range map[string]string{
		"search":   `{"queries":["s","zzz"],"limit":20}`,
		"describe": `{"names":["mcp__kb__search","web_get","terminal","nothing","x"]}`,
		"call":     `{"calls":[{"name":"mcp__tracker__create_issue"},{"name":"serch"},{"name":"mcp__tracker__stats"}]}`,
	} {
		want := show(send(t, w, w.caller(t, settings{}), kind, json.RawMessage(args)))
		for range 10 {
			if got := show(send(t, w, w.caller(t, settings{}), kind, json.RawMessage(args))); got != want {
				t.Fatalf("%s:\n%s", kind, cmp.Diff(want, got))
			}
		}
	}
}
