package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/testbin"
)

const staticText = "mcp://kb/test://static-text"

// librarian is a daemon with a server's resources and prompts, and everything that may refuse to give them.
func librarian(t *testing.T) *overseen {
	t.Helper()
	server := testbin.Build(t, "internal/testbin/mcpserver")
	hook := filepath.Join(t.TempDir(), "hook")
	text := "#!/bin/sh\nread -r event\ncase \"$event\" in *hook-blocks*) echo '{\"action\":\"block\",\"message\":\"not today\"}' ;; esac\n"
	if err := os.WriteFile(hook, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LIBRARY_KEY", "s3cr3t-value")
	d := start(t, fmt.Sprintf(`
plugin "hello" {
  path = %q
}
mcp_server "kb" {
  command   = [%q]
  resources = true
  prompts   = true
  env       = { KEY = secret("env:LIBRARY_KEY") }
}
audit {
  arguments = true
}
approvals {
  wait = "20s"
}
hook "guard" {
  on    = "pre_call"
  match = ["mcp__kb__*"]
  exec  = [%q]
}
rule "no binaries" {
  when   = glob(tool.name, "mcp__*__resources/read") && endswith(args.uri, "-binary")
  action = "deny"
  reason = "text only"
}
rule "no prompts for this one" {
  when   = tool.name == "mcp__kb__prompts/get" && agent.name == "reader"
  action = "deny"
  reason = "prompts are the owner's"
}
rule "ask first" {
  when   = tool.source_name == "kb" && can(regex("watched", args.uri))
  action = "ask"
}
`, plugin("hello"), server, hook)+agentBlock("attended", attended)+agentBlock("reader", noGuard)+agentBlock("narrow", "  toolsets = [\"plugin:hello\"]\n"+noGuard))
	o := &overseen{running: d}
	s := o.as("attended", "2025-11-25", nil)
	eventually(t, "its resources are known", func() bool {
		list, err := s.ListResources(t.Context(), nil)
		return err == nil && len(list.Resources) > 0
	})
	return o
}

// as connects an agent.
func (o *overseen) as(agent, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	transport := &sdk.StreamableClientTransport{Endpoint: o.url + "/mcp", HTTPClient: &http.Client{Transport: authorized{token(agent)}}}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "integration", Version: "1"}, opts).Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if err := session.Close(); err != nil {
			o.t.Log("close:", err)
		}
	})
	return session
}

func TestResourcesAndPromptsPassTheOnePipeline(t *testing.T) {
	o := librarian(t)
	read := func(s *sdk.ClientSession, uri string) error {
		_, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		return err
	}
	get := func(s *sdk.ClientSession) error {
		_, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "mcp__kb__test_prompt_with_arguments", Arguments: map[string]string{"arg1": "s3cr3t-value", "arg2": "b"}})
		return err
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			asked := 0
			choice := "once"
			owner := o.as("attended", version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				if !strings.Contains(r.Params.Message, "mcp__kb__resources/read") || !strings.Contains(r.Params.Message, "test://watched-resource") {
					t.Errorf("the human reads %q", r.Params.Message)
				}
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"choice": choice}}, nil
			}})
			reader, narrow := o.as("reader", version, nil), o.as("narrow", version, nil)
			for name, step := range map[string]struct {
				err  error
				want string // "" succeeds
			}{
				"what nothing forbids is read":           {read(owner, staticText), ""},
				"a rule denies by the URI":               {read(owner, "mcp://kb/test://static-binary"), "text only"},
				"a rule denies by the agent":             {get(reader), "prompts are the owner's"},
				"and lets the other one":                 {get(owner), ""},
				"the floor denies":                       {read(owner, "mcp://kb/file://"+filepath.Join(o.dir, "state", "approval.key")), "denied"},
				"a hook blocks":                          {read(owner, "mcp://kb/test://template/hook-blocks/data"), "not today"},
				"nobody is there to be asked":            {read(reader, "mcp://kb/test://watched-resource"), "nobody"},
				"scope: the toolset is not granted":      {read(narrow, staticText), "not found"},
				"scope: nor are its prompts":             {get(narrow), "unknown prompt"},
				"a human approves":                       {read(owner, "mcp://kb/test://watched-resource"), ""},
				"the server's own refusal passes as one": {read(owner, "mcp://kb/test://nothing"), "not found"},
			} {
				if (step.err == nil) != (step.want == "") || step.err != nil && !strings.Contains(step.err.Error(), step.want) {
					t.Errorf("%s: %v", name, step.err)
				}
			}
			choice = "deny"
			if err := read(owner, "mcp://kb/test://watched-resource"); err == nil || asked != 2 {
				t.Errorf("denied by a human: %v, asked %d times", err, asked)
			}
			if list, err := narrow.ListResources(t.Context(), nil); err != nil || strings.Contains(fmt.Sprint(list.Resources), "kb") {
				t.Errorf("a list shows what scope hides: %+v %v", list, err)
			}
		})
	}

	type record struct {
		Agent, Kind, Tool, Source, Args, Rule, Outcome, Code, Approval string
		SourceName                                                     string `json:"source_name"`
	}
	records := func(args ...string) (list []record) {
		t.Helper()
		out := o.must(append([]string{"audit", "query", "--json", "--limit", "200"}, args...)...)
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return list
	}
	outcomes := map[string]int{}
	for _, r := range records("--tool", "mcp__kb__resources/read") {
		outcomes[r.Agent+" "+r.Kind+" "+r.Outcome]++
		if r.Source != "mcp" || r.SourceName != "kb" || !strings.Contains(r.Args, `{"uri":"`) && r.Kind != "asked" && r.Kind != "answered" {
			t.Errorf("an incomplete record: %+v", r)
		}
	}
	// For each generation: read, approved, refused by the server; refused by a rule, by the floor and by a human; blocked by a hook. The newer
	// one brings each question back with the request, of which nothing ran before.
	for want, n := range map[string]int{
		"attended started ": 6, "attended finished ok": 4, "attended finished error": 2, "attended finished denied": 8,
		"attended finished blocked": 2, "reader finished denied": 2, "attended asked ": 4, "attended answered ok": 2, "attended answered denied": 2,
	} {
		if outcomes[want] != n {
			t.Errorf("%d records %q, want %d; all: %v", outcomes[want], want, n, outcomes)
		}
	}
	if list := records("--tool", "mcp__kb__prompts/get", "--outcome", "ok"); len(list) != 2 || !strings.Contains(list[0].Args, `"arg2":"b"`) {
		t.Errorf("prompts on record: %+v", list)
	}
	if list := records("--agent", "narrow"); len(list) != 4 || list[0].Code != "unknown_tool" {
		t.Errorf("what scope refused, on record: %+v", list)
	}
	if all := o.must("audit", "export", "--jsonl"); strings.Contains(all, "s3cr3t-value") {
		t.Error("a secret is on record")
	}
	if out := o.must("audit", "verify"); !strings.Contains(out, "the chain is sound") {
		t.Error(out)
	}

	// An operator tries a rule on such a request as on any call.
	trial := filepath.Join(t.TempDir(), "call.json")
	if err := os.WriteFile(trial, []byte(`{"agent":"attended","tool":"mcp__kb__resources/read","arguments":{"uri":"test://static-binary"},"expect":"deny"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := o.must("policy", "test", trial); !strings.Contains(out, "no binaries") {
		t.Error(out)
	}
}
