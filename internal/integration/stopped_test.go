package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/testbin"
)

// A client that was stopped (Ctrl-Z) reads nothing. The server whose news it wanted goes on serving everybody else, and the
// client goes on when it is continued.
func TestAStoppedClientHoldsUpNoServer(t *testing.T) {
	d := start(t, fmt.Sprintf(`
tools {
  tool_search = false
}
mcp_server "kb" {
  command   = [%q]
  prefix    = ""
  resources = true
  env       = { TOUCHES = "2000" }
}
`, testbin.Build(t, "internal/testbin/mcpserver")))
	ready(t, d, "touch_watched_resource")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.Command(filepath.Join(bin, "hermesd"), "mcp", "-c", d.config)
	stopped, err := sdk.NewClient(&sdk.Implementation{Name: "integration", Version: "1"}, nil).
		Connect(ctx, &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	if err := stopped.Subscribe(ctx, &sdk.SubscribeParams{URI: "test://watched-resource"}); err != nil {
		t.Fatal(err)
	}
	busy := d.connect(nil)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 10 { // far more news than all buffers on the way hold
		if text, isError := call(t, busy, "touch_watched_resource", nil); isError || text != "touched" {
			t.Errorf("a call beside the stopped client: %s", text)
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if text, isError := call(t, stopped, "touch_watched_resource", nil); isError || text != "touched" {
		t.Errorf("when it was continued: %s", text)
	}
}
