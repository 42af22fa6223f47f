package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// overseen is a daemon with a terminal, and everything that may refuse a call.
type overseen struct {
	*running
	folder string // in which the terminal's commands run
	socket string // the daemon's
}

// token is an agent's bearer token in these tests.
func token(agent string) string { return "token-of-" + agent }

func agentBlock(name, more string) string {
	sum := sha256.Sum256([]byte(token(name)))
	return fmt.Sprintf("agent %q {\n  token_sha256 = %q\n%s\n}\n", name, hex.EncodeToString(sum[:]), more)
}

func terminalBlock(folder, socket string) string {
	return fmt.Sprintf(`
plugin "terminal" {
  path      = %q
  trust     = "builtin"
  isolation = "none" // what keeps commands from the daemon must hold by itself
  env       = { HERMESD_SOCKET = %q }
  config {
    root     = %q
    env_pass = ["HERMESD_SOCKET"]
  }
}
`, plugin("terminal"), socket, folder)
}

// noGuard lets an agent fail as often as a test wants it to.
const noGuard = "  guard {\n    same_call_warn  = 0\n    same_call_block = 0\n    same_tool_warn  = 0\n    same_tool_block = 0\n  }"

// oversee starts the daemon.
func oversee(t *testing.T, blocks string) *overseen {
	t.Helper()
	folder := t.TempDir()
	script := filepath.Join(t.TempDir(), "hook")
	text := "#!/bin/sh\nread -r event\ncase \"$event\" in\n*hook-blocks*) echo '{\"action\":\"block\",\"message\":\"not today\"}' ;;\n*hook-breaks*) echo '{\"action\":' ;;\nesac\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "admin.sock")
	blocks += fmt.Sprintf("listen {\n  http  = \"127.0.0.1:0\"\n  admin = %q\n}\n", socket)
	d := start(t, terminalBlock(folder, socket)+fmt.Sprintf(`
plugin "hello" {
  path = %q
}
plugin "weather" {
  path = %q
}
hook "guard" {
  on    = "pre_call"
  match = ["terminal"]
  exec  = [%q]
}
rule "no" {
  when   = can(regex("rule-denies", args.command))
  action = "deny"
  reason = "not here"
}
rule "ask first" {
  when   = can(regex("needs-a-human", args.command))
  action = "ask"
}
`, plugin("hello"), plugin("weather"), script)+
		agentBlock("desk", noGuard)+agentBlock("narrow", "  toolsets = [\"plugin:hello\"]\n"+noGuard)+
		agentBlock("slow", "  guard {\n    calls_per_minute = 1\n  }")+agentBlock("loops", "  guard {\n    same_call_warn  = 1\n    same_call_block = 1\n  }")+blocks)
	ready(t, d, "greet", "terminal", "weather")
	return &overseen{d, folder, socket}
}

// ran lists the calls that really ran: each leaves a file.
func (o *overseen) ran() []string {
	o.t.Helper()
	entries, err := os.ReadDir(o.folder)
	if err != nil {
		o.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// attempt is one call, however it is made.
type attempt struct {
	agent, tool string
	args        map[string]any
}

func (a *attempt) call() map[string]any { return map[string]any{"name": a.tool, "arguments": a.args} }

// bridged is the attempt as the one entry of a tool_call.
func (a *attempt) bridged() *attempt {
	return &attempt{a.agent, "tool_call", map[string]any{"calls": []any{a.call()}}}
}

// batched is the attempt as the second of three entries.
func (a *attempt) batched() *attempt {
	other := map[string]any{"name": "greet", "arguments": map[string]any{"name": "Ada"}}
	return &attempt{a.agent, "tool_call", map[string]any{"calls": []any{other, a.call(), other}}}
}

type authorized struct{ token string }

func (b authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// overMCP calls by the official client, of one protocol version.
func overMCP(version string) func(*overseen, *attempt) string {
	return func(o *overseen, a *attempt) string {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		client := sdk.NewClient(&sdk.Implementation{Name: "matrix", Version: "1"}, nil)
		transport := &sdk.StreamableClientTransport{Endpoint: o.url + "/mcp", HTTPClient: &http.Client{Transport: authorized{token(a.agent)}}}
		session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			o.t.Fatal(err)
		}
		defer func() {
			if err := session.Close(); err != nil {
				o.t.Log("close:", err)
			}
		}()
		text, _ := call(o.t, session, a.tool, a.args)
		return text
	}
}

func (o *overseen) postAs(agent string, raw []byte) string {
	o.t.Helper()
	client := &http.Client{Transport: authorized{token(agent)}, Timeout: patience}
	response, err := client.Post(o.url+"/v1/calls", "application/json", bytes.NewReader(raw))
	return body(o.t, response, err)
}

func functionCalling(shape func(*attempt) any) func(*overseen, *attempt) string {
	return func(o *overseen, a *attempt) string {
		raw, err := json.Marshal(shape(a))
		if err != nil {
			o.t.Fatal(err)
		}
		return o.postAs(a.agent, raw)
	}
}

// overStdio calls through `hermesd mcp`.
func overStdio(o *overseen, a *attempt) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := sdk.NewClient(&sdk.Implementation{Name: "matrix", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: exec.Command(filepath.Join(bin, "hermesd"), "mcp", "--agent", a.agent, "-c", o.config)}, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() {
		if err := session.Close(); err != nil {
			o.t.Log("close:", err)
		}
	}()
	text, _ := call(o.t, session, a.tool, a.args)
	return text
}

func onTheCommandLine(o *overseen, a *attempt) string {
	raw, err := json.Marshal(a.args)
	if err != nil {
		o.t.Fatal(err)
	}
	out, errs, _ := o.hermesd("tool", "call", a.tool, string(raw), "--agent", a.agent)
	return out + errs
}

// ways are all ways to a tool. A new front end joins by one line.
var ways = map[string]func(*overseen, *attempt) string{
	"MCP 2025-11-25, by the tool's name":     overMCP("2025-11-25"),
	"MCP 2026-07-28, by the tool's name":     overMCP("2026-07-28"),
	"MCP, tool_call":                         func(o *overseen, a *attempt) string { return overMCP("2025-11-25")(o, a.bridged()) },
	"MCP, an entry of a batch":               func(o *overseen, a *attempt) string { return overMCP("2026-07-28")(o, a.batched()) },
	"HTTP, a plain call":                     functionCalling(func(a *attempt) any { return a.call() }),
	"HTTP, one of several calls":             functionCalling(func(a *attempt) any { return map[string]any{"calls": []any{a.call(), a.call()}} }),
	"HTTP, tool_call":                        functionCalling(func(a *attempt) any { return a.bridged().call() }),
	"HTTP, OpenAI's tool_calls":              functionCalling(openAICalls),
	"stdio, by the tool's name":              overStdio,
	"stdio, an entry of a batch":             func(o *overseen, a *attempt) string { return overStdio(o, a.batched()) },
	"the command line":                       onTheCommandLine,
	"the command line, an entry of a batch ": func(o *overseen, a *attempt) string { return onTheCommandLine(o, a.batched()) },
}

func openAICalls(a *attempt) any {
	args, err := json.Marshal(a.args)
	if err != nil {
		return nil
	}
	return map[string]any{"tool_calls": []any{map[string]any{
		"id": "1", "type": "function", "function": map[string]any{"name": a.tool, "arguments": string(args)},
	}}}
}

// command is a call of the terminal that leaves a file if it runs.
func command(agent, line string) attempt {
	return attempt{agent, "terminal", map[string]any{"command": "touch ran; echo " + line}}
}

// stages are all stages that may refuse, each with a call that it refuses and the code. A new stage joins by one line.
var stages = map[string]struct {
	attempt attempt
	code    string
}{
	"scope: not granted":        {command("narrow", "x"), "unknown_tool"},
	"scope: no such tool":       {attempt{"desk", "no_such_tool", map[string]any{}}, "unknown_tool"},
	"guard: rate":               {command("slow", "x"), "rate_limited"},
	"guard: loop":               {attempt{"loops", "terminal", map[string]any{"command": 7.5}}, "loop_blocked"},
	"precondition":              {attempt{"desk", "weather", map[string]any{"city": "Lyon"}}, "not_available"},
	"validation":                {attempt{"desk", "terminal", map[string]any{"command": "touch ran", "timeout": "soon"}}, "invalid_arguments"},
	"hook: blocks":              {command("desk", "hook-blocks"), "blocked_by_hook"},
	"hook: answers half a JSON": {command("desk", "hook-breaks"), "hook_failed"},
	"rule: denies":              {command("desk", "rule-denies"), "denied_by_rule"},
	"floor":                     {command("desk", "STATE/approval.key"), "denied_by_rule"},
	"approval: nobody there":    {command("desk", "needs-a-human"), "nobody_asked"},
}

func TestNoStageCanBeWalkedAround(t *testing.T) {
	o := oversee(t, "")
	// What uses the guards' limits up: from here on they refuse.
	o.postAs("slow", []byte(`{"name":"greet","arguments":{"name":"Ada"}}`))
	for name, s := range stages {
		t.Run(name, func(t *testing.T) {
			a := s.attempt
			if line, ok := a.args["command"].(string); ok {
				a.args = map[string]any{"command": strings.ReplaceAll(line, "STATE", filepath.Join(o.dir, "state"))}
				for k, v := range s.attempt.args {
					if k != "command" {
						a.args[k] = v
					}
				}
			}
			for way, try := range ways {
				got := try(o, &a)
				if !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(got, `\`, ""), `": "`, `":"`), `"code":"`+s.code+`"`) {
					t.Errorf("%s: not refused with %s:\n%s", way, s.code, got)
				}
			}
			if ran := o.ran(); len(ran) > 0 {
				t.Errorf("it ran: %v", ran)
			}
		})
	}
	// The same calls without a reason to refuse them run, by every way: else the above proves nothing.
	for way, try := range ways {
		a := attempt{"desk", "terminal", map[string]any{"command": fmt.Sprintf("touch %x", way)}}
		got := try(o, &a)
		if !slices.Contains(o.ran(), fmt.Sprintf("%x", way)) {
			t.Errorf("%s does not work: %s", way, got)
		}
	}
	out, errs, code := o.hermesd("audit", "verify")
	if code != 0 || !strings.Contains(out, "the chain is sound") {
		t.Errorf("audit verify: %s%s", out, errs)
	}
}
