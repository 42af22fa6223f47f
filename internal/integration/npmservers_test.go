package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/testnode"
)

// npmServer is a real MCP server, with a call that it can answer.
type npmServer struct {
	name, script string
	args         []string
	env          map[string]string
	tool, call   string
}

// offline is loaded into every server first: whatever host it asks, an HTTP server of the test answers, so that servers of
// services on the Internet do real work without it.
const offline = `
const http = require('http'), https = require('https');
const port = process.env.OFFLINE_PORT;
const local = url => { const u = new URL(url); if (u.hostname === '127.0.0.1') return u; return new URL(u.pathname + u.search, 'http://127.0.0.1:' + port); };
https.request = (target, options, done) => {
  if (typeof options === 'function') { done = options; options = {}; }
  const o = typeof target === 'string' || target instanceof URL ? { path: new URL(target).pathname + new URL(target).search, ...options } : { ...target };
  return http.request({ method: o.method, path: o.path, headers: o.headers, host: '127.0.0.1', port }, done);
};
const real = globalThis.fetch;
globalThis.fetch = (input, init) => real(local(typeof input === 'string' ? input : input.url || input), { ...init, dispatcher: undefined });
`

// everybody answers for every service: each reads its own keys.
func everybody(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Total", "0")
	if strings.HasPrefix(r.URL.Path, "/gitlab") {
		fmt.Fprint(w, "[]")
		return
	}
	fmt.Fprint(w, `{"ok":true,"ts":"1.5","total_count":0,"incomplete_results":false,"items":[],
		"web":{"results":[{"title":"Größe <b>&amp;</b>","description":"d","url":"https://example.com/"}]},
		"status":"OK","results":[{"geometry":{"location":{"lat":1.5,"lng":-2}},"formatted_address":"Straße 1","place_id":"p"}]}`)
}

func npmServers(t *testing.T, dir string) []npmServer {
	t.Helper()
	scoped := func(name string) string { return "@modelcontextprotocol/server-" + name + "/dist/index.js" }
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one <two> & é\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(http.HandlerFunc(everybody))
	t.Cleanup(api.Close)
	preload := filepath.Join(dir, "offline.cjs")
	if err := os.WriteFile(preload, []byte(offline), 0o600); err != nil {
		t.Fatal(err)
	}
	port := api.URL[strings.LastIndex(api.URL, ":")+1:]
	env := func(pairs ...string) map[string]string {
		m := map[string]string{"NODE_OPTIONS": "--require " + preload, "OFFLINE_PORT": port}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	list := []npmServer{
		{"everything", scoped("everything"), []string{"stdio"}, nil, "get-structured-content", `{"location":"Chicago"}`},
		{"everything-image", scoped("everything"), []string{"stdio"}, nil, "get-tiny-image", `{}`},
		{"filesystem", scoped("filesystem"), []string{dir}, nil, "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt"))},
		{"memory", scoped("memory"), nil, map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}, "read_graph", `{}`},
		{"thinking", scoped("sequential-thinking"), nil, nil, "sequentialthinking", `{"thought":"a <b>","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`},
		{"github", scoped("github"), nil, env("GITHUB_PERSONAL_ACCESS_TOKEN", "none"), "search_repositories", `{"query":"hermes"}`},
		{"gitlab", scoped("gitlab"), nil, env("GITLAB_PERSONAL_ACCESS_TOKEN", "none", "GITLAB_API_URL", api.URL+"/gitlab"), "search_repositories", `{"search":"hermes"}`},
		{"slack", scoped("slack"), nil, env("SLACK_BOT_TOKEN", "none", "SLACK_TEAM_ID", "T1"), "slack_post_message", `{"channel_id":"C1","text":"hello"}`},
		{"brave", scoped("brave-search"), nil, env("BRAVE_API_KEY", "none"), "brave_web_search", `{"query":"size"}`},
		{"maps", scoped("google-maps"), nil, env("GOOGLE_MAPS_API_KEY", "none"), "maps_geocode", `{"address":"Straße 1"}`},
		{"context7", "@upstash/context7-mcp/dist/index.js", nil, env("CONTEXT7_API_URL", api.URL+"/api"), "resolve-library-id", `{"query":"routes","libraryName":"react"}`},
	}
	return list
}

func (s *npmServer) command(t *testing.T) []string {
	return append([]string{testnode.Node(t), filepath.Join(testnode.Modules(t), s.script)}, s.args...)
}

// wire is what a server wrote, line by line.
type wire struct {
	mu    sync.Mutex
	lines [][]byte
}

// direct talks to a server with the official SDK alone, and keeps the bytes that the server sent.
func (s *npmServer) direct(t *testing.T) (*sdk.ClientSession, *wire) {
	t.Helper()
	argv := s.command(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	for k, v := range s.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); cmd.Wait() })
	w := &wire{}
	r, pipe := io.Pipe()
	go func() {
		defer pipe.Close()
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			w.mu.Lock()
			w.lines = append(w.lines, line)
			w.mu.Unlock()
			if _, err := pipe.Write(line); err != nil {
				return
			}
		}
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "direct", Version: "1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{ // as hermesd
		Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		Sampling:    &sdk.SamplingCapabilities{Tools: &sdk.SamplingToolsCapabilities{}},
	}})
	session, err := client.Connect(ctx, &sdk.IOTransport{Reader: r, Writer: in}, nil)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	t.Cleanup(func() { session.Close() })
	return session, w
}

// result is the last result on the wire that has a key.
func (w *wire) result(t *testing.T, key string) map[string]json.RawMessage {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.lines) - 1; i >= 0; i-- {
		var m struct{ Result map[string]json.RawMessage }
		if json.Unmarshal(w.lines[i], &m) == nil && m.Result[key] != nil {
			return m.Result
		}
	}
	t.Fatalf("no result with %s", key)
	return nil
}

// raw posts a request and returns the bytes of its result.
func (d *running) raw(method, params string) json.RawMessage {
	d.t.Helper()
	var result json.RawMessage
	d.post(method, params, nil, func(line []byte) bool {
		var m struct{ Result json.RawMessage }
		err := json.Unmarshal(line, &m)
		result = m.Result
		return err == nil && result != nil
	})
	return result
}

// post sends a request with some more headers, and has read look for the answer: one document, or one of a stream's events.
func (d *running) post(method, params string, headers map[string]string, read func(line []byte) bool) {
	d.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+"/mcp", strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for key, value := range headers {
		req.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range bytes.Lines(all) {
		if read(bytes.TrimPrefix(line, []byte("data: "))) {
			return
		}
	}
	d.t.Fatalf("%s: HTTP %d %s", method, resp.StatusCode, all)
}

// Every server that a user has elsewhere works here: its tools with the same schemas, its results with the same bytes.
func TestRealServersAnswerThroughTheDaemonAsTheyDoDirectly(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	servers := npmServers(t, dir)
	var blocks strings.Builder
	blocks.WriteString("tools {\n  tool_search = false\n}\n")
	var probes []string
	for _, s := range servers {
		fmt.Fprintf(&blocks, "mcp_server %q {\n  connect_timeout = \"60s\"\n  parallel = true\n  allow_read = [%q, %q]\n  allow_write = [%q]\n  command = [", s.name, dir, testnode.Modules(t), dir)
		for _, w := range s.command(t) {
			fmt.Fprintf(&blocks, "%q, ", w)
		}
		blocks.WriteString("]\n  env = {\n")
		for k, v := range s.env {
			fmt.Fprintf(&blocks, "    %s = %q\n", k, v)
		}
		blocks.WriteString("  }\n}\n")
		probes = append(probes, "mcp__"+s.name+"__"+s.tool)
	}
	d := start(t, blocks.String())
	ready(t, d, probes...)
	var listed struct {
		Tools []struct {
			Name         string
			Description  string
			InputSchema  json.RawMessage
			OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(d.raw("tools/list", "{}"), &listed); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			session, wire := s.direct(t)
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			var tools []map[string]json.RawMessage
			if err := json.Unmarshal(wire.result(t, "tools")["tools"], &tools); err != nil {
				t.Fatal(err)
			}
			for _, want := range tools {
				if bytes.Contains(want["execution"], []byte("required")) {
					continue // runs as a task only, which is not offered
				}
				var own string
				if err := json.Unmarshal(want["name"], &own); err != nil {
					t.Fatal(err)
				}
				found := false
				for _, got := range listed.Tools {
					if got.Name != "mcp__"+s.name+"__"+own {
						continue
					}
					found = true
					if !bytes.Equal(got.InputSchema, want["inputSchema"]) || !bytes.Equal(got.OutputSchema, want["outputSchema"]) {
						t.Errorf("%s: schema\n%s %s\ndirectly\n%s %s", own, got.InputSchema, got.OutputSchema, want["inputSchema"], want["outputSchema"])
					}
				}
				if !found {
					t.Errorf("%s is not listed", own)
				}
			}
			if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: s.tool, Arguments: json.RawMessage(s.call)}); err != nil {
				t.Fatal(err)
			}
			want := wire.result(t, "content")
			var got map[string]json.RawMessage
			if err := json.Unmarshal(d.raw("tools/call", fmt.Sprintf(`{"name":"mcp__%s__%s","arguments":%s}`, s.name, s.tool, s.call)), &got); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"content", "structuredContent", "isError"} {
				w := want[key]
				if key == "isError" && string(w) == "false" {
					w = nil // MCP's default, left out
				}
				if !bytes.Equal(got[key], w) {
					t.Errorf("%s of %s:\n%s\ndirectly\n%s", key, s.tool, got[key], w)
				}
			}
			t.Logf("%s: %s", s.tool, bounded(string(got["content"]), 200))
		})
	}
}

func bounded(s string, n int) string { return s[:min(len(s), n)] }
