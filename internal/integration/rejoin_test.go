package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client of `hermesd mcp` outlives its daemon: what was in flight is answered, what comes meanwhile is told what to do,
// and the next daemon serves the same client.
func TestAStdioClientOutlivesItsDaemon(t *testing.T) {
	for name, version := range map[string]string{"with a session": "2025-11-25", "without one": ""} {
		t.Run(name, func(t *testing.T) { outlive(t, version) })
	}
}

// outlive plays a client of a protocol version, "" the newest.
func outlive(t *testing.T, version string) {
	d := start(t, fmt.Sprintf(`
tools {
  tool_search = false
}
plugin "streaming" {
  path = %q
}
`, plugin("streaming")))
	ready(t, d, "countdown", "count_primes")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	counting, changed := make(chan struct{}, 100), make(chan struct{}, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "integration", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { counting <- struct{}{} },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: exec.Command(filepath.Join(bin, "hermesd"), "mcp", "-c", d.config)},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	inFlight := make(chan error, 1)
	go func() {
		params := &sdk.CallToolParams{Name: "countdown", Arguments: map[string]any{"seconds": 60}}
		params.SetProgressToken("p")
		_, err := session.CallTool(ctx, params)
		inFlight <- err
	}()
	<-counting
	d.kill()
	if err := <-inFlight; err == nil || !strings.Contains(err.Error(), "may or may not have run") {
		t.Errorf("the call in flight: %v", err)
	}
	if _, err := session.ListTools(ctx, nil); err == nil || !strings.Contains(err.Error(), "hermesd serve") {
		t.Errorf("while the daemon is away: %v", err)
	}
	for len(changed) > 0 {
		<-changed
	}
	next := launchConfig(t, d.dir, d.config)
	next.awaitReady()
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("the client was not told to look at its tools again")
	}
	ready(t, next, "count_primes")
	if text, isError := call(t, session, "count_primes", map[string]any{"below": 10}); isError {
		t.Errorf("at the next daemon: %s", text)
	}
}
