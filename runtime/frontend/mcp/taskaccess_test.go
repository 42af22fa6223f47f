package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestATaskIsItsAgentsAlone(t *testing.T) {
	run, release, ended := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	mine, other := e.tasker(t, frontendtest.Token), e.tasker(t, frontendtest.OtherToken)
	id := mine.call("jobs_run", `{}`).TaskID
	for name, a := range map[string]*taskAnswer{
		"another agent asks":     other.get(id),
		"another agent answers":  other.update(id, `{}`),
		"another agent cancels":  other.cancel(id),
		"a task that never was":  mine.get("none"),
		"an answer to none":      mine.update("none", `{}`),
		"a cancellation of none": mine.cancel("none"),
		"no name":                mine.ask("tasks/get", "", `"x":1`),
	} {
		if a.refused == nil || a.refused.Code != -32602 || a.refused.http != http.StatusBadRequest {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := mine.get(id); a.Status != "working" || len(ended) > 0 {
		t.Errorf("then: %+v", a)
	}
	close(release)
	mine.status(id, "completed")
}

func TestTheHeadersOfARequestForATaskNameIt(t *testing.T) {
	run, release, _ := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	c := e.tasker(t, frontendtest.Token)
	id := c.call("jobs_run", `{}`).TaskID
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		for name, header := range map[string]map[string]string{
			"no name":        {"Mcp-Method": method},
			"another name":   {"Mcp-Method": method, "Mcp-Name": "x" + id},
			"no method":      {"Mcp-Name": id},
			"another method": {"Mcp-Method": "tools/call", "Mcp-Name": id},
		} {
			header["Mcp-Protocol-Version"] = newer
			resp := e.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s},"taskId":%q,"inputResponses":{}}}`, method, newer, tasksCaps, id), header)
			var m struct {
				ID    int
				Error struct{ Code int }
			}
			if err := json.Unmarshal(readMessages(t, resp)[0], &m); err != nil || m.ID != 7 || m.Error.Code != -32020 || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s, %s: HTTP %d, %+v, %v", method, name, resp.StatusCode, m, err)
			}
		}
	}
	if a := c.get(id); a.Status != "working" {
		t.Errorf("then: %+v", a)
	}
	close(release)
}

func TestACancelledTaskStaysCancelled(t *testing.T) {
	run, _, ended := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	c := e.tasker(t, frontendtest.Token)
	id := c.call("jobs_run", `{}`).TaskID
	for range 2 {
		if a := c.cancel(id); a.ResultType != "complete" || a.Status != "" || a.TaskID != "" {
			t.Errorf("the acknowledgement: %+v", a)
		}
	}
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
	if a := c.get(id); a.Status != "cancelled" || a.Result != nil || a.Error != nil {
		t.Errorf("then: %+v", a)
	}
}

func TestTasksEndWithTheFrontEnd(t *testing.T) {
	run, _, ended := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	e.tasker(t, frontendtest.Token).call("jobs_run", `{}`)
	if err := e.server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("it was closed while the call ran")
	}
}

func TestTasksEndBeforeCallsAreDrained(t *testing.T) {
	run, _, ended := held("jobs_run")
	e := serve(t, providertest.New("jobs", run, job("jobs_quick", func(context.Context, *provider.Host) (*tool.Result, error) { return tool.TextResult("plain"), nil })))
	c := e.tasker(t, frontendtest.Token)
	c.call("jobs_run", `{}`)
	e.server.EndTasks()
	<-ended
	if a := c.call("jobs_quick", `{}`); a.ResultType != "complete" {
		t.Errorf("a call became a task when tasks had ended: %+v", a)
	}
}

func TestTasksEndWithTheirAgent(t *testing.T) {
	run, _, ended := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	e.tasker(t, frontendtest.Token).call("jobs_run", `{}`)
	e.Agents.Remove("desk")
	e.server.Refresh()
	<-ended
}

func TestATaskGoesOnWithoutTheRequest(t *testing.T) {
	run, release, ended := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	id := e.streamed(t).call("jobs_run", `{}`).TaskID // whose agent is "desk", too
	c := e.tasker(t, frontendtest.Token)
	if a := c.get(id); a.Status != "working" || len(ended) > 0 {
		t.Errorf("%+v", a)
	}
	close(release)
	c.status(id, "completed")
}

// Whoever answers first is heard; the others are told nothing else.
func TestManyAnswersToOneQuestionAreOne(t *testing.T) {
	e := serve(t, providertest.New("jobs", job("jobs_ask", func(ctx context.Context, host *provider.Host) (*tool.Result, error) {
		a, err := host.Ask(ctx, provider.Question{Message: "who?"})
		return tool.TextResult(string(a.Content)), err
	})))
	c := e.tasker(t, frontendtest.Token)
	id := c.call("jobs_ask", `{}`).TaskID
	asking := c.status(id, "input_required")
	var key string
	for key = range asking.InputRequests {
	}
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			if a := c.update(id, fmt.Sprintf(`{%q:{"action":"accept","content":{"n":%d}}}`, key, n)); a.ResultType != "complete" {
				t.Errorf("%+v", a.refused)
			}
		})
	}
	clients.Wait()
	first := c.status(id, "completed")
	if a := c.update(id, fmt.Sprintf(`{%q:{"action":"decline"}}`, key)); a.ResultType != "complete" {
		t.Errorf("after the end: %+v", a.refused)
	}
	if again := c.get(id); !strings.Contains(string(first.Result), `{\"n\":`) || string(again.Result) != string(first.Result) {
		t.Errorf("%s, then %s", first.Result, again.Result)
	}
}

// What is against the protocol is refused, and the task goes on.
func TestGarbageAboutATaskIsRefused(t *testing.T) {
	run, release, _ := held("jobs_run")
	e := serve(t, providertest.New("jobs", run))
	c := e.tasker(t, frontendtest.Token)
	id := c.call("jobs_run", `{}`).TaskID
	for name, members := range map[string]string{
		"a name that is a number":     `"taskId":7`,
		"a name that is null":         `"taskId":null`,
		"a name in other letters":     fmt.Sprintf(`"TASKID":%q`, id),
		"another name after its name": fmt.Sprintf(`"taskId":%q,"taskId":"other"`, id),
		"answers that are a list":     fmt.Sprintf(`"taskId":%q,"inputResponses":[1]`, id),
		"answers that are text":       fmt.Sprintf(`"taskId":%q,"inputResponses":"x"`, id),
	} {
		if a := c.ask("tasks/update", id, members); a.refused == nil || a.refused.http != http.StatusBadRequest {
			t.Errorf("%s: %+v", name, a)
		}
	}
	var unknown strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&unknown, `"%d":{"action":"accept"},`, i)
	}
	for _, answers := range []string{`{` + unknown.String() + `"x":null}`, `null`, `{}`} {
		if a := c.update(id, answers); a.ResultType != "complete" {
			t.Errorf("%.20s: %+v", answers, a.refused)
		}
	}
	if a := c.get(id); a.Status != "working" {
		t.Errorf("then: %+v", a)
	}
	close(release)
	c.status(id, "completed")
}
