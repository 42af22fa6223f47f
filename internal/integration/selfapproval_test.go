package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// probeArg makes the test binary a program that an agent runs in its terminal to approve its own call.
const probeArg = "try-to-approve"

// probe prints what the daemon said and returns 0 if it let itself be fooled.
func probe(args []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := fmt.Errorf("unknown way %q", args)
	switch {
	case args[0] == "socket":
		err = probeSocket(ctx, args[1], args[2])
	case args[0] == "mcp":
		err = probeMCP(ctx, args[1])
	case args[0] == "http":
		err = probeHTTP(ctx, args[1])
	}
	if err != nil {
		fmt.Println("refused:", err)
		return 1
	}
	fmt.Println("fooled")
	return 0
}

// probeSocket speaks to the admin socket itself.
func probeSocket(ctx context.Context, socket, id string) error {
	client, err := admin.Dial(ctx, socket)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.AnswerApproval(ctx, &adminpb.AnswerApprovalRequest{Id: id, Choice: "once"})
	return err
}

// probeMCP is a client of the local agent that says yes to whatever it is asked.
func probeMCP(ctx context.Context, url string) error {
	client := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"choice": "once"}}, nil
		},
	})
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "terminal", Arguments: map[string]any{"command": "echo needs-a-human by itself"}})
	if err == nil && result.IsError {
		err = fmt.Errorf("%s", textOf(result))
	}
	return err
}

// probeHTTP makes a call as the local agent.
func probeHTTP(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/calls", strings.NewReader(`{"name":"greet","arguments":{"name":"Ada"}}`))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}

func TestAnAgentCannotApproveItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := approved(t, "")
	o.watchAs("attended")
	answer := o.begin("attended", "touch approved-itself; echo needs-a-human")
	id := o.question("approved-itself").ID

	// The floor stops whoever names the socket, so the programs find it in their environment, as if by luck.
	hermesd := filepath.Join(bin, "hermesd")
	cases := map[string]string{
		"the command line":                  hermesd + " approvals approve " + id,
		"a grant for ever":                  hermesd + " approvals approve --always " + id,
		"the command line, watching":        "timeout 5 " + hermesd + " approvals watch",
		"the command line, orphaned":        "(setsid " + hermesd + " approvals approve " + id + " >out 2>&1 &); until grep -q . out; do sleep 0.05; done; cat out; rm out",
		"the socket":                        self + " " + probeArg + " socket $HERMESD_SOCKET " + id,
		"an MCP client of the local agent":  self + " " + probeArg + " mcp " + o.url,
		"HTTP, as the local agent":          self + " " + probeArg + " http " + o.url,
		"a session over stdio":              "echo '{}' | " + hermesd + " mcp",
		"the command line, to call a tool":  hermesd + " tool call greet '{\"name\":\"Ada\"}'",
		"the command line, to stop the ask": hermesd + " approvals deny " + id,
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			got := o.ask("desk", line)
			if !strings.Contains(got, "tool, a hook or a provider of this daemon") && !strings.Contains(got, "Unauthorized") {
				t.Errorf("not refused for what it is: %s", got)
			}
			if strings.Contains(got, "fooled") {
				t.Errorf("it worked: %s", got)
			}
		})
	}
	for name, line := range map[string]string{
		"by the socket's path": hermesd + " approvals approve --socket " + o.socket + " " + id,
		"by reading the key":   "cat " + filepath.Join(o.dir, "state", "approval.key"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := o.ask("desk", line); !strings.Contains(got, "floor: ") {
				t.Errorf("the floor lets it through: %s", got)
			}
		})
	}
	if p := o.question("approved-itself"); p.ID != id {
		t.Errorf("it is asked about anew: %+v", p)
	}
	if o.read("approved-itself") != "" {
		t.Error("it ran")
	}
	var records []struct{ By, Approval, Outcome string }
	if err := json.Unmarshal([]byte(o.must("audit", "query", "--kind", "refused", "--json", "--limit", "100")), &records); err != nil {
		t.Fatal(err)
	}
	if len(records) < len(cases) {
		t.Errorf("%d attempts and %d records: %+v", len(cases), len(records), records)
	}
	// A human still can.
	o.must("approvals", "deny", id)
	if got := <-answer; !strings.Contains(got, "approval_denied") {
		t.Errorf("it ended as %s", got)
	}
}
