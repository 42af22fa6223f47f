package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
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
	params := fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}},%s}`, members)
	headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
	var a *taskAnswer
	d.post(method, params, headers, func(line []byte) bool {
		a = &taskAnswer{}
		return json.Unmarshal(line, a) == nil
	})
	return a
}

// compute begins a task that takes its time.
func (d *running) compute(seconds float64) (id string) {
	d.t.Helper()
	a := d.tasked("tools/call", "slow_compute", fmt.Sprintf(`"name":"slow_compute","arguments":{"seconds":%g}`, seconds))
	if a.Result.ResultType != "task" || a.Result.Status != "working" {
		d.t.Fatalf("got %+v %+v", a.Result, a.Error)
	}
	return a.Result.TaskID
}

// task asks how a task goes.
func (d *running) task(id string) *taskAnswer {
	d.t.Helper()
	return d.tasked("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
}

// working is a block of a server that makes tasks.
func working(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("tools {\n  tool_search = false\n}\nmcp_server \"work\" {\n  command = [%q]\n  prefix  = \"\"\n}\n", testbin.Build(t, "internal/testbin/mcpserver"))
}

// A task is one call: it is on record when it starts and when the task has ended, and a stop of the daemon ends it.
func TestATaskIsOneCallOnRecord(t *testing.T) {
	d := start(t, working(t))
	ready(t, d, "slow_compute")
	type record struct{ Kind, Tool, Outcome, Code string }
	records := func() (list []record) {
		t.Helper()
		out, errs, code := d.hermesd("audit", "query", "--json", "--tool", "slow_compute")
		if code != 0 || json.Unmarshal([]byte(out), &list) != nil {
			t.Fatalf("%d: %s%s", code, out, errs)
		}
		return list
	}

	long := d.compute(50)
	if list := records(); len(list) != 1 || list[0].Kind != "started" {
		t.Errorf("while it runs: %+v", list)
	}
	id := d.compute(0.3)
	eventually(t, "the short one is done", func() bool { return d.task(id).Result.Status == "completed" })
	if a := d.task(id); !strings.Contains(string(a.Result.Result), "computed for 0.3 seconds") {
		t.Errorf("its result: %s", a.Result.Result)
	}
	if list := records(); len(list) != 3 || list[0].Kind != "finished" || list[0].Outcome != "ok" {
		t.Errorf("when one has ended: %+v", list)
	}
	if a := d.task(long); a.Result.Status != "working" {
		t.Errorf("the long one: %+v", a.Result)
	}

	begun := time.Now()
	d.stop()
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the stop waited for a task: %v", took)
	}
	d = launchConfig(t, d.dir, d.config)
	d.awaitReady()
	if a := d.task(long); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("after the restart: %+v", a)
	}
	if list := records(); len(list) != 4 || list[0].Kind != "finished" || list[0].Code != "cancelled" {
		t.Errorf("then: %+v", list)
	}
}

// A daemon behind a daemon, over `hermesd mcp`: each is the client of one task and has another for its own client.
func TestATaskPassesThroughTwoDaemons(t *testing.T) {
	inner := start(t, working(t))
	ready(t, inner, "slow_compute")
	outer := start(t, fmt.Sprintf("tools {\n  tool_search = false\n}\nmcp_server \"inner\" {\n  command = [%q, \"mcp\", \"-c\", %q]\n  prefix  = \"\"\n}\n",
		filepath.Join(bin, "hermesd"), inner.config))
	ready(t, outer, "slow_compute", "multi_input")
	id := outer.compute(0.5)
	eventually(t, "it is done", func() bool { return outer.task(id).Result.Status == "completed" })
	if a := outer.task(id); !strings.Contains(string(a.Result.Result), "computed for 0.5 seconds") {
		t.Errorf("its result: %s", a.Result.Result)
	}
	if a := inner.task(id); a.Error == nil {
		t.Errorf("the inner daemon knows the outer one's task: %+v", a.Result)
	}
	long := outer.compute(50)
	outer.tasked("tasks/cancel", long, fmt.Sprintf(`"taskId":%q`, long))
	eventually(t, "it is cancelled behind both", func() bool {
		out, _, _ := inner.hermesd("audit", "query", "--json", "--tool", "slow_compute")
		return strings.Contains(out, `"cancelled"`)
	})
}

// Whoever cannot come back for a result gets it at once, or is told what the server wants.
func TestWithoutTasksACallIsAnsweredWhenItHasEnded(t *testing.T) {
	d := start(t, working(t))
	ready(t, d, "slow_compute", "failing_job")
	for body, want := range map[string]string{
		`{"name":"slow_compute","arguments":{"seconds":0.1}}`: "computed for 0.1 seconds",
		`{"name":"failing_job","arguments":{}}`:               `io.modelcontextprotocol/tasks`,
	} {
		resp, err := http.Post(d.url+"/v1/calls", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(all), want) {
			t.Errorf("%s: %s %v", body, all, err)
		}
	}
	if text, failed := call(t, d.connect(nil), "slow_compute", map[string]any{"seconds": 0.1}); failed || text != "computed for 0.1 seconds" {
		t.Errorf("an MCP client without tasks: %s", text)
	}
}

func TestATaskThatRanWhenTheDaemonDiedIsClosedOnRecord(t *testing.T) {
	d := start(t, working(t))
	ready(t, d, "slow_compute")
	id := d.compute(50)
	d.kill()
	d = launchConfig(t, d.dir, d.config)
	d.awaitReady()
	if a := d.task(id); a.Error == nil || a.Error.Code != -32602 || !strings.Contains(a.Error.Message, "call the tool again") {
		t.Errorf("after the restart: %+v", a)
	}
	out, errs, code := d.hermesd("audit", "query", "--json", "--tool", "slow_compute")
	var list []struct{ Kind, Code string }
	if code != 0 || json.Unmarshal([]byte(out), &list) != nil || len(list) != 2 || list[0].Kind != "finished" || list[0].Code != "outcome_unknown" {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}
