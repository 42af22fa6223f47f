package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// patience bounds what a test waits for; a loaded machine must not fail it.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	os.Exit(m.Run())
}

// server is an MCP server with some tools, each of which answers with its name.
func server(t *testing.T, tools map[string]string) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	for name, description := range tools {
		s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name}}}, nil
			})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	return web.URL
}

// running is a daemon in this process.
type running struct {
	*daemon.Daemon
	t    *testing.T
	stop func()
}

func serve(t *testing.T, dir, blocks string) *running {
	t.Helper()
	head := fmt.Sprintf("state_dir = %q\nlisten {\n  http  = \"off\"\n  admin = %q\n}\n", filepath.Join(dir, "state"), filepath.Join(dir, "a.sock"))
	cfg, diags := config.Parse(filepath.Join(dir, "hermesd.hcl"), []byte(head+blocks), nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	d, err := daemon.New(&daemon.Options{Config: cfg, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	r := &running{Daemon: d, t: t}
	stopped := false
	r.stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	for _, wait := range []<-chan struct{}{d.Ready(), d.Settled()} {
		select {
		case <-wait:
		case err := <-ended:
			t.Fatal(errors.Join(errors.New("the daemon ended"), err))
		case <-time.After(patience):
			t.Fatal("the daemon does not become ready")
		}
	}
	t.Cleanup(r.stop)
	return r
}

// search returns the matches of a query.
func (r *running) search(agent, query string) []string {
	r.t.Helper()
	args, err := json.Marshal(map[string]any{"queries": []string{query}})
	if err != nil {
		r.t.Fatal(err)
	}
	result, err := r.Call(r.t.Context(), agent, "tool_search", args)
	if err != nil || result.IsError {
		r.t.Fatalf("%v %v", result, err)
	}
	var answer struct{ Results []struct{ Matches []string } }
	if err := json.Unmarshal([]byte(result.Text()), &answer); err != nil {
		r.t.Fatal(err)
	}
	return answer.Results[0].Matches
}

func (r *running) call(agent, name string) {
	r.t.Helper()
	args, err := json.Marshal(map[string]any{"calls": []any{map[string]any{"name": name}}})
	if err != nil {
		r.t.Fatal(err)
	}
	if result, err := r.Call(r.t.Context(), agent, "tool_call", args); err != nil || result.IsError {
		r.t.Fatalf("%s: %v %v", name, result, err)
	}
}

func (r *running) admin() *admin.Client {
	r.t.Helper()
	c, err := admin.Dial(r.t.Context(), r.Addresses().Admin)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("it did not come to this: %s", what)
		case <-tick.C:
		}
	}
}

var trackers = map[string]string{
	"list_reports": "Lists the reports of a quarter.", "send_report": "Sends a report of a quarter.", "report_status": "Tells the status of a report.",
}

func TestAnAgentThatLearnsFindsWhatItUsed(t *testing.T) {
	dir, url := t.TempDir(), server(t, trackers)
	blocks := fmt.Sprintf(`
tools {
  tool_search {
    enabled = "on"
    learn   = true
  }
}
agent "desk" {
}
agent "fixed" {
  tool_search {
    learn = false
  }
}
mcp_server "office" {
  url = %q
}
`, url)
	d := serve(t, dir, blocks)
	const query = "quarter report"
	before := d.search("desk", query)
	if len(before) != 3 {
		t.Fatalf("found %q", before)
	}
	used := before[1]
	for range 12 { // until the lessons outweigh the words
		for _, agent := range []string{"desk", "fixed"} {
			d.search(agent, query)
			d.call(agent, used)
		}
	}
	eventually(t, "the used tool is first", func() bool { return d.search("desk", query)[0] == used })
	if got := d.search("fixed", query); !slices.Equal(got, before) {
		t.Errorf("an agent that does not learn finds %q, not %q", got, before)
	}
	d.stop()

	d = serve(t, dir, blocks)
	if got := d.search("desk", query); got[0] != used {
		t.Errorf("after a restart %q is found", got)
	}
	why, err := d.admin().Search(t.Context(), &adminpb.SearchRequest{Agent: "desk", Queries: []string{query}, Explain: true})
	if err != nil || !strings.Contains(string(why.GetExplanation()), `"Usage":0.`) {
		t.Errorf("the explanation says nothing of use: %s, %v", why.GetExplanation(), err)
	}
	forgotten, err := d.admin().Forget(t.Context(), &adminpb.ForgetRequest{Agent: "desk", Tool: used})
	if err != nil || forgotten.GetLessons() == 0 {
		t.Errorf("forgot %v, %v", forgotten, err)
	}
	if got := d.search("desk", query); !slices.Equal(got, before) {
		t.Errorf("after forgetting %q is found, not %q", got, before)
	}
}

func TestAnEmbeddingsEndpointReordersWhatWordsFind(t *testing.T) {
	t.Setenv("HERMESD_TEST_KEY", "k3y-of-the-endpoint")
	var order atomic.Pointer[[]string] // of the tools, the nearest to every query first; nil while the endpoint is down
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.Header.Get("Authorization") != "Bearer k3y-of-the-endpoint" {
			t.Errorf("%v, %v", err, r.Header)
		}
		if strings.Contains(strings.Join(req.Input, " "), "k3y-of-the-endpoint") {
			t.Errorf("a secret was sent: %q", req.Input)
		}
		if order.Load() == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var data []map[string]any
		for _, text := range req.Input {
			place := slices.IndexFunc(*order.Load(), func(name string) bool {
				return strings.Contains(text, strings.ReplaceAll(strings.TrimPrefix(name, "mcp__office__"), "_", " "))
			})
			data = append(data, map[string]any{"embedding": []int{1, max(place, 0)}})
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
			t.Log(err)
		}
	}))
	defer web.Close()
	d := serve(t, t.TempDir(), fmt.Sprintf(`
tools {
  tool_search {
    enabled = "on"
  }
}
mcp_server "office" {
  url = %q
}
embeddings {
  url     = %q
  model   = "m"
  api_key = secret("env:HERMESD_TEST_KEY")
}
`, server(t, trackers), web.URL))
	words := d.search("", "report")
	if len(words) != 3 {
		t.Fatalf("found %q", words)
	}
	meant := []string{words[1], words[2], words[0]}
	order.Store(&meant)
	eventually(t, "the meaning counts", func() bool { return d.search("", "report")[0] == meant[0] })
	d.search("", "report k3y-of-the-endpoint")
	web.Close()
	if got := d.search("", "another report"); len(got) != 3 || got[0] == meant[0] {
		t.Errorf("without the endpoint %q is found", got)
	}
}

func TestAnAgentsSynonymsAreItsOwn(t *testing.T) {
	d := serve(t, t.TempDir(), fmt.Sprintf(`
tools {
  tool_search {
    enabled  = "on"
    synonyms = { paperwork = ["report"] }
  }
}
agent "desk" {
  tool_search {
    synonyms = { zettel = ["status"] }
  }
}
agent "other" {
}
mcp_server "office" {
  url = %q
}
`, server(t, trackers)))
	for _, agent := range []string{"desk", "other"} {
		if got := d.search(agent, "paperwork"); len(got) != 3 {
			t.Errorf("%s finds %q for everybody's synonym", agent, got)
		}
	}
	if got := d.search("desk", "zettel"); len(got) != 1 || got[0] != "mcp__office__report_status" {
		t.Errorf("the agent's own synonym finds %q", got)
	}
	if got := d.search("other", "zettel"); len(got) != 0 {
		t.Errorf("another agent's synonym finds %q", got)
	}
}
