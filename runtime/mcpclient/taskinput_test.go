package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestWhatATaskAsksForIsAnsweredOnceAndOneByOne(t *testing.T) {
	r, s := startTasks(t)
	asking := `"status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"a?"}},"b":{"method":"roots/list"}}`
	host, _ := letting()
	release := make(chan struct{})
	var mu sync.Mutex
	var asked []string
	host.OnInputs = func(_ context.Context, inputs map[string]provider.Input) (map[string]json.RawMessage, error) {
		answers := map[string]json.RawMessage{}
		for key, in := range inputs {
			mu.Lock()
			asked = append(asked, key+" "+in.Method)
			mu.Unlock()
			if key == "b" {
				<-release // until the other answer has gone out
			}
			answers[key] = json.RawMessage(`{"for":"` + key + `"}`)
		}
		return answers, nil
	}
	gets := slices.Repeat([]string{asking}, 10)
	req := r.request("job", script(t, &taskScript{Gets: append(gets, done)}), host)
	ended := make(chan string, 1)
	go func() {
		result, err := r.Invoke(t.Context(), req)
		if err != nil {
			result = tool.AsError(err).Result()
		}
		ended <- result.Text()
	}()
	if got := s.hears(r, "tasks/update"); got != `tasks/update {"a":{"for":"a"}}` {
		t.Errorf("first %s", got)
	}
	close(release)
	s.hears(r, `tasks/update {"b":{"for":"b"}}`)
	if got := <-ended; got != "done" {
		t.Error(got)
	}
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"a elicitation/create", "b roots/list"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsHandedOverAgainWhenTheServerFailsToTakeIt(t *testing.T) {
	r, s := startTasks(t)
	host, _ := letting()
	asked := 0
	host.OnInputs = func(context.Context, map[string]provider.Input) (map[string]json.RawMessage, error) {
		asked++
		return map[string]json.RawMessage{"a": json.RawMessage(`{"roots":[]}`)}, nil
	}
	gets := slices.Repeat([]string{`"status":"input_required","inputRequests":{"a":{"method":"roots/list"}}`}, 100)
	busy := `ERROR{"code":-32603,"message":"busy"}`
	if got := r.text("job", script(t, &taskScript{Gets: append(gets, done), Updates: []string{busy, `"x":1`}}), host); got != "done" {
		t.Error(got)
	}
	if n := s.tellings(`tasks/update {"a":{"roots":[]}}`); n != 2 || asked != 1 {
		t.Errorf("asked %d times, told %d times", asked, n)
	}
}

func TestATaskWhoseQuestionsLeadNowhereIsGivenUp(t *testing.T) {
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"k%d":{"method":"roots/list"}`, i))
		}
		return `"status":"input_required","inputRequests":{` + strings.Join(all, ",") + `}`
	}
	answering := func(context.Context, map[string]provider.Input) (map[string]json.RawMessage, error) {
		return map[string]json.RawMessage{}, nil
	}
	cases := map[string]struct {
		script taskScript
		inputs func(context.Context, map[string]provider.Input) (map[string]json.RawMessage, error)
		code   tool.Code
	}{
		"nobody answers": {taskScript{Gets: []string{many(1)}}, func(context.Context, map[string]provider.Input) (map[string]json.RawMessage, error) {
			return nil, tool.Errorf(tool.Timeout, "nobody answered")
		}, tool.Timeout},
		"an error that is none of ours": {taskScript{Gets: []string{many(1)}}, func(context.Context, map[string]provider.Input) (map[string]json.RawMessage, error) {
			return nil, errors.New("odd")
		}, tool.Internal},
		"too many":                         {taskScript{Gets: []string{many(101)}}, answering, tool.ToolFailed},
		"too much":                         {taskScript{Gets: []string{`"status":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"` + strings.Repeat("m", 1<<20) + `"}}}`}}, answering, tool.ToolFailed},
		"the server refuses the answer":    {taskScript{Gets: []string{many(1)}, Updates: []string{`ERROR{"code":-32602,"message":"no"}`}}, answering, tool.ToolFailed},
		"what nobody can be asked for":     {taskScript{Gets: []string{`"status":"input_required","inputRequests":{"k":{"method":"novelty"}}`}}, nil, tool.Unsupported},
		"what this caller cannot be asked": {taskScript{Gets: []string{`"status":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}`}}, nil, tool.Unsupported},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, s := startTasks(t)
			host, _ := letting()
			host.OnInputs = c.inputs
			r.fails(t.Context(), r.request("job", script(t, &c.script), host), c.code)
			s.hears(r, "tasks/cancel")
		})
	}
}

// A server may do without an answer after all, and ask again.
func TestWhatATaskAsksForNoMoreIsWithdrawn(t *testing.T) {
	r, s := startTasks(t)
	asking := `"status":"input_required","inputRequests":{"a":{"method":"roots/list"}}`
	host, _ := letting()
	asked, withdrawn := make(chan string, 2), make(chan error, 2)
	host.OnInputs = func(ctx context.Context, inputs map[string]provider.Input) (map[string]json.RawMessage, error) {
		for key := range inputs {
			asked <- key
		}
		<-ctx.Done()
		withdrawn <- ctx.Err()
		return nil, context.Cause(ctx)
	}
	working := `"status":"working"`
	if got := r.text("job", script(t, &taskScript{Gets: []string{asking, working, asking, working, done}}), host); got != "done" {
		t.Error(got)
	}
	for range 2 {
		if key, err := <-asked, <-withdrawn; key != "a" || err != context.Canceled {
			t.Errorf("asked for %s: %v", key, err)
		}
	}
	if n := s.tellings("tasks/"); n != 0 {
		t.Errorf("the server was told %d things that it had not asked for", n)
	}
}
