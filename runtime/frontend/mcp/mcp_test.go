package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMainJob(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			e := serve(t, providertest.New("notes", core(providertest.Echo("notes_read")), providertest.Echo("notes_archive")))
			s := e.connect(t, version, nil)

			if got := s.InitializeResult(); got != nil && got.ProtocolVersion != version {
				t.Errorf("negotiated %s", got.ProtocolVersion)
			}
			want := []string{"notes_read", "tool_search", "tool_describe", "tool_call"}
			if diff := cmp.Diff(want, names(t, s)); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			if got := text(t, call(t, s, "tool_search", map[string]any{"queries": []string{"archive notes"}})); !strings.Contains(got, `"notes_archive"`) {
				t.Errorf("the search did not find the deferred tool: %s", got)
			}
			if got := text(t, call(t, s, "tool_describe", map[string]any{"names": []string{"notes_archive"}})); !strings.Contains(got, "parameters") {
				t.Errorf("describe: %s", got)
			}
			bridged := call(t, s, "tool_call", map[string]any{"name": "notes_archive", "arguments": map[string]any{"x": 1}})
			direct := call(t, s, "notes_archive", map[string]any{"x": 1})
			if a, b := text(t, bridged), text(t, direct); a != `{"x":1}` || a != b {
				t.Errorf("bridged %s, direct %s", a, b)
			}
		})
	}
}

func TestAnUnknownToolIsAnAnswerThatHelps(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			e := serve(t, providertest.New("notes", providertest.Echo("notes_archive")))
			r := call(t, e.connect(t, version, nil), "notes_archiv", nil)
			var got struct{ Error, Code string }
			if err := json.Unmarshal([]byte(text(t, r)), &got); err != nil {
				t.Fatal(err)
			}
			if !r.IsError || got.Code != "unknown_tool" || !strings.Contains(got.Error, "notes_archive") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A block of a kind that the SDK does not know would be refused by it; keys that it does not know would be dropped.
func TestContentBlocksPassByteForByte(t *testing.T) {
	blocks := []tool.Content{
		tool.Content(`{"type":"text","text":"a < b & c > d","annotations":{"priority":0.5,"x":1},"z":[1,2]}`),
		tool.Content(`{"type":"novelty","big":12345678901234567890,"_meta":{"k":"v"}}`),
		tool.Image("image/png", []byte{1, 2, 3}),
	}
	p := providertest.New("media", providertest.Tool{
		Definition: tool.Definition{Name: "media_show"},
		Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
			return &tool.Result{Content: blocks, Structured: json.RawMessage(`{"b":1,"a":12345678901234567890}`), Meta: json.RawMessage(`{"own":true}`)}, nil
		},
	})
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			e := serve(t, p)
			result := rawCall(t, e, version, "media_show")
			var got struct {
				Content    []json.RawMessage          `json:"content"`
				Structured json.RawMessage            `json:"structuredContent"`
				Meta       map[string]json.RawMessage `json:"_meta"`
				ResultType string                     `json:"resultType"`
			}
			if err := json.Unmarshal(result, &got); err != nil {
				t.Fatal(err)
			}
			for i, b := range blocks {
				if string(got.Content[i]) != string(b) {
					t.Errorf("block %d:\nsent %s\ngot  %s", i, b, got.Content[i])
				}
			}
			if string(got.Structured) != `{"b":1,"a":12345678901234567890}` || string(got.Meta["own"]) != "true" {
				t.Errorf("structured %s, meta %s", got.Structured, got.Meta)
			}
			if wantType := map[string]string{newer: "complete"}[version]; got.ResultType != wantType {
				t.Errorf("resultType %q, want %q", got.ResultType, wantType)
			}
		})
	}
}

func TestAnswerThatIsNoJSONIsAnErrorAndNotSilence(t *testing.T) {
	p := providertest.New("bad", providertest.Tool{
		Definition: tool.Definition{Name: "bad_json"},
		Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
			return &tool.Result{Content: []tool.Content{tool.Content(`{"type":`)}}, nil
		},
	})
	e := serve(t, p)
	r := call(t, e.connect(t, older, nil), "bad_json", nil)
	if got := text(t, r); !r.IsError || !strings.Contains(got, "bad_answer") {
		t.Errorf("got %s", got)
	}
}
