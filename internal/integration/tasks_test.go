package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testbin"
)

// taskAnswer is what a client reads of answers about tasks.
type taskAnswer struct {
	Result struct {
		ResultType, TaskID, Status string
		Result                     json.RawMessage
	}
	Error *struct {
		Code    int
		Message string
	}
}

// tasked sends a request of a client that takes tasks.
func (d *running) tasked(method, name, members string) *taskAnswer {
	d.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}},%s}}`, method, members)
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+"/mcp", strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
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
	for line := range bytes.Lines(all) { // one document, or a stream of events
		a := &taskAnswer{}
		if json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), a) == nil {
			return a
		}
	}
	d.t.Fatalf("%s: HTTP %d %s", method, resp.StatusCode, all)
	return nil
}

// A task is one call: it is on record when it starts and when the task has ended, and a stop of the daemon ends it.
func TestATaskIsOneCallOnRecord(t *testing.T) {
	d := start(t, fmt.Sprintf("tools {\n  tool_search = false\n}\nmcp_server \"work\" {\n  command = [%q]\n  prefix  = \"\"\n}\n", testbin.Build(t, "internal/testbin/mcpserver")))
	ready(t, d, "slow_compute")
	compute := func(seconds float64) string {
		a := d.tasked("tools/call", "slow_compute", fmt.Sprintf(`"name":"slow_compute","arguments":{"seconds":%g}`, seconds))
		if a.Result.ResultType != "task" || a.Result.Status != "working" {
			t.Fatalf("got %+v %+v", a.Result, a.Error)
		}
		return a.Result.TaskID
	}
	get := func(id string) *taskAnswer { return d.tasked("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)) }
	type record struct{ Kind, Tool, Outcome, Code string }
	records := func() (list []record) {
		t.Helper()
		out, errs, code := d.hermesd("audit", "query", "--json", "--tool", "slow_compute")
		if code != 0 || json.Unmarshal([]byte(out), &list) != nil {
			t.Fatalf("%d: %s%s", code, out, errs)
		}
		return list
	}

	long := compute(50)
	if list := records(); len(list) != 1 || list[0].Kind != "started" {
		t.Errorf("while it runs: %+v", list)
	}
	id := compute(0.3)
	eventually(t, "the short one is done", func() bool { return get(id).Result.Status == "completed" })
	if a := get(id); !strings.Contains(string(a.Result.Result), "computed for 0.3 seconds") {
		t.Errorf("its result: %s", a.Result.Result)
	}
	if list := records(); len(list) != 3 || list[0].Kind != "finished" || list[0].Outcome != "ok" {
		t.Errorf("when one has ended: %+v", list)
	}
	if a := get(long); a.Result.Status != "working" {
		t.Errorf("the long one: %+v", a.Result)
	}

	begun := time.Now()
	d.stop()
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the stop waited for a task: %v", took)
	}
	d = launchConfig(t, d.dir, d.config)
	d.awaitReady()
	if a := get(long); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("after the restart: %+v", a)
	}
	if list := records(); len(list) != 4 || list[0].Kind != "finished" || list[0].Code != "cancelled" {
		t.Errorf("then: %+v", list)
	}
}
