package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/internal/testnode"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// everything is the command of the reference server that exercises every feature.
func everything(t testing.TB, mode string) []string {
	return []string{testnode.Node(t), filepath.Join(testnode.Modules(t), "@modelcontextprotocol/server-everything/dist/index.js"), mode}
}

// direct connects to a server with the official SDK alone.
func direct(t testing.TB, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "direct", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
	}})
	s, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sameAsDirect compares every tool, and the results of some calls, with a direct client's.
func sameAsDirect(t *testing.T, r *running, d *mcp.ClientSession, calls map[string]string) {
	t.Helper()
	r.await("the list", func(o *provider.Offer) bool { return len(o.Tools) > 0 })
	list, err := d.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	offer := r.Offer()
	if len(list.Tools) != len(offer.Tools) {
		t.Errorf("%d tools, the direct client has %d", len(offer.Tools), len(list.Tools))
	}
	for _, want := range list.Tools {
		got := r.find(want.Name)
		if got.Description != want.Description {
			t.Errorf("%s: description %q, want %q", want.Name, got.Description, want.Description)
		}
		var schema any
		if err := json.Unmarshal(got.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		if _, refused := offer.Refused[got.Name]; refused {
			t.Logf("%s is refused: %s", want.Name, offer.Refused[got.Name])
			continue
		}
		if diff := cmp.Diff(want.InputSchema, schema); diff != "" {
			t.Errorf("%s: schema: %s", want.Name, diff)
		}
	}
	for own, args := range calls {
		got, err := r.call(own, args)
		if err != nil {
			t.Errorf("%s: %v", own, err)
			continue
		}
		want, err := d.CallTool(t.Context(), &mcp.CallToolParams{Name: own, Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Errorf("%s: %s", own, diff)
		}
	}
}

// asJSON is a result as its parts' values, whatever the order of its keys.
func asJSON(t testing.TB, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

var everythingCalls = map[string]string{
	"echo":                   `{"message":"<héllo>"}`,
	"get-sum":                `{"a":2,"b":40}`,
	"get-tiny-image":         `{}`,
	"get-annotated-message":  `{"messageType":"error","includeImage":true}`,
	"get-resource-links":     `{"count":3}`,
	"get-structured-content": `{"location":"Chicago"}`,
}

func TestServerEverythingOverStdio(t *testing.T) {
	command := everything(t, "stdio")
	r := start(t, mcpclient.Options{Command: command, Parallel: true})
	r.ready()
	sameAsDirect(t, r, direct(t, &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}), everythingCalls)

	steps := 0
	host := &provider.Host{
		OnProgress: func(tool.Progress) { steps++ },
		OnAsk: func(context.Context, provider.Question) (provider.Answer, error) {
			return provider.Answer{Action: "decline"}, nil
		},
		OnSample: func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`), nil
		},
	}
	r.text("trigger-long-running-operation", `{"duration":0.3,"steps":3}`, host)
	if steps != 3 {
		t.Errorf("%d steps of progress", steps)
	}
	if got := r.text("trigger-sampling-request", `{"prompt":"hi"}`, host); !strings.Contains(got, "sampled") {
		t.Error(got)
	}
	if got := r.text("trigger-elicitation-request", `{}`, host); !strings.Contains(got, "declined") {
		t.Error(got)
	}
}

func TestServerEverythingOverStreamableHTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	command := everything(t, "streamableHttp")
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := "http://127.0.0.1:" + port + "/mcp"
	r := start(t, mcpclient.Options{URL: url, Parallel: true}) // before the server listens
	t.Cleanup(func() {
		r.stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "listening") {
			break
		}
	}
	r.ready()
	sameAsDirect(t, r, direct(t, &mcp.StreamableClientTransport{Endpoint: url}), everythingCalls)
}

func TestServerFilesystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{testnode.Node(t), filepath.Join(testnode.Modules(t), "@modelcontextprotocol/server-filesystem/dist/index.js"), dir}
	r := start(t, mcpclient.Options{Command: command})
	r.ready()
	file, err := json.Marshal(filepath.Join(dir, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sameAsDirect(t, r, direct(t, &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}), map[string]string{
		"read_text_file":           `{"path":` + string(file) + `}`,
		"list_allowed_directories": `{}`,
		"get_file_info":            `{"path":"/etc/shadow"}`,
	})
}
