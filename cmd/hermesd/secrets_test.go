package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// welcomed is closed once the daemon has said that it is ready.
type welcomed struct {
	once sync.Once
	done chan struct{}
}

func (w *welcomed) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "is ready") {
		w.once.Do(func() { close(w.done) })
	}
	return len(b), nil
}

// As under systemd: the daemon has its secrets from its own environment, and everybody else's shell has not.
func TestCommandsDoWithoutTheSecretsOfTheDaemon(t *testing.T) {
	dir, err := os.MkdirTemp("", "hermesd") // t.TempDir's path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "hermesd.hcl")
	const text = `state_dir = "state"
listen {
  http = "off"
}
mcp_server "notes" {
  command = ["no-such-program"]
  env     = { NOTES_TOKEN = secret("env:TEST_NOTES_TOKEN") }
}
mcp_server "remote" {
  url = secret("env:TEST_REMOTE_URL")
}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_NOTES_TOKEN", "token-of-notes")
	t.Setenv("TEST_REMOTE_URL", "http://127.0.0.1:9/mcp?key=key-of-remote")
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := &welcomed{done: make(chan struct{})}, make(chan int, 1)
	var log bytes.Buffer
	go func() { ended <- execute(ctx, []string{"serve", "-c", config}, nil, ready, &log) }()
	defer func() {
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("the daemon ended with %d: %s", code, log.String())
		}
	}()
	select {
	case <-ready.done:
	case code := <-ended:
		ended <- code
		t.Fatalf("the daemon ended before it was ready: %s", log.String())
	}
	for _, name := range []string{"TEST_NOTES_TOKEN", "TEST_REMOTE_URL"} {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"ide","version":"1"}}}` + "\n"
	for line, want := range map[string]string{
		"mcp":                     `"protocolVersion":"2025-06-18"`,
		"tool list":               "NAME",
		"tool search a word":      "no match",
		"plugin list":             "notes",
		"plugin inspect notes":    `"name": "notes"`,
		"approvals list":          "Nothing waits",
		"approvals grants":        "ID",
		"audit query":             "",
		"mcp-server list":         "remote",
		"mcp-server logout notes": "",
		"doctor":                  "daemon     version",
	} {
		t.Run(line, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := execute(context.Background(), append(strings.Fields(line), "-c", config), strings.NewReader(hello), &out, &errOut)
			// What a command says about this configuration is its own affair.
			if strings.Contains(errOut.String(), "configuration") || code == exitNoDaemon || code == exitUsage || !strings.Contains(out.String(), want) {
				t.Errorf("exit code %d: %s%s", code, out.String(), errOut.String())
			}
		})
	}
}
