package mcp_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestCallsThatAskMoreThanThereIsRoomForAreToldSoAndRunOnce(t *testing.T) {
	const calls = 1001
	ask := providertest.Asking("forms_ask", provider.Question{Message: "sure?"})
	inner := ask.Handler
	var runs, refused atomic.Int32
	ask.Handler = func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		runs.Add(1)
		result, err := inner(ctx, req)
		if tool.CodeOf(err) == tool.RateLimited {
			refused.Add(1)
		}
		return result, err
	}
	e := serve(t, providertest.New("forms", ask))
	var mu sync.Mutex
	var states []string
	told := 0
	var clients sync.WaitGroup
	for range 7 {
		clients.Go(func() {
			for range calls / 7 {
				r := e.round(t, `{}`, "", nil)
				mu.Lock()
				switch {
				case r.ResultType == "input_required" && r.RequestState != "" && len(r.InputRequests) == 1:
					states = append(states, r.RequestState)
				case r.IsError && strings.Contains(r.Content[0].Text, `"rate_limited"`) && strings.Contains(r.Content[0].Text, "call again"):
					told++
				default:
					t.Errorf("neither a question nor a refusal: %+v", r)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if len(states) != 500 || told != calls-500 || int(refused.Load()) != told || runs.Load() != calls {
		t.Errorf("%d calls: %d wait, %d were told that there is no room, %d of %d runs were refused a question", calls, len(states), told, refused.Load(), runs.Load())
	}
	other := map[string]string{"Authorization": "Bearer " + frontendtest.OtherToken}
	if r := e.round(t, `{}`, "", other); r.RequestState == "" {
		t.Errorf("another agent's question: %+v", r)
	}
	for _, state := range states[:10] {
		if r := e.round(t, `{}`, answered(state), nil); r.IsError || r.Content[0].Text != `accept {"x":1}` {
			t.Errorf("an answer: %+v", r)
		}
	}
	if r := e.round(t, `{}`, "", nil); r.RequestState == "" {
		t.Errorf("no room after some were answered: %+v", r)
	}
	if runs.Load() != calls+2 {
		t.Errorf("%d runs of %d calls", runs.Load(), calls+2)
	}
}
