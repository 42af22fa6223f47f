package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

type rounds struct {
	Content       []struct{ Text string }
	IsError       bool
	ResultType    string
	RequestState  string
	InputRequests map[string]struct {
		Method string
		Params struct{ Message, Mode string }
	}
	refusal string // the protocol error instead of a result
}

// round sends one round of a call by a client that answers questions by itself.
func (e *endpoint) round(t *testing.T, args, more string, header map[string]string) rounds {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}},"name":"forms_ask","arguments":%s%s}}`, newer, args, more)
	all := map[string]string{"Mcp-Protocol-Version": newer, "Mcp-Method": "tools/call", "Mcp-Name": "forms_ask"}
	for k, v := range header {
		all[k] = v
	}
	messages := readMessages(t, e.post(t, body, all))
	var m struct {
		Result rounds
		Error  struct{ Message string }
	}
	if err := json.Unmarshal(messages[len(messages)-1], &m); err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	m.Result.refusal = m.Error.Message
	return m.Result
}

func answered(state string) string {
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"question":{"action":"accept","content":{"x":1}}}`, state)
}

func TestARequestStateWorksOnceAndForItsCallOnly(t *testing.T) {
	runs := make(chan struct{}, 10)
	ask := providertest.Asking("forms_ask", provider.Question{Message: "sure?"})
	inner := ask.Handler
	ask.Handler = func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		runs <- struct{}{}
		return inner(ctx, req)
	}
	e := serve(t, providertest.New("forms", ask))
	first := e.round(t, `{"a":1}`, "", nil)
	if first.ResultType != "input_required" || first.RequestState == "" || first.InputRequests["question"].Params.Message != "sure?" || len(first.Content) > 0 {
		t.Fatalf("the question: %+v", first)
	}
	refused := map[string]rounds{
		"other arguments": e.round(t, `{"a":2}`, answered(first.RequestState), nil),
		"another agent":   e.round(t, `{"a":1}`, answered(first.RequestState), map[string]string{"Authorization": "Bearer " + frontendtest.OtherToken}),
		"another state":   e.round(t, `{"a":1}`, answered("x"+first.RequestState), nil),
	}
	for name, r := range refused {
		if !strings.Contains(r.refusal, "no call waits") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := e.round(t, `{"a":1}`, answered(first.RequestState), nil); r.IsError || r.ResultType != "complete" || r.Content[0].Text != `accept {"x":1}` {
		t.Errorf("the answer: %+v", r)
	}
	if r := e.round(t, `{"a":1}`, answered(first.RequestState), nil); r.refusal == "" {
		t.Errorf("a second time: %+v", r)
	}
	if len(runs) != 1 {
		t.Errorf("the tool ran %d times", len(runs))
	}
}

func TestAQuestionThatNobodyAnswersEndsTheCall(t *testing.T) {
	failed := make(chan error, 1)
	e := serveWith(t, &mcp.Options{AskTimeout: time.Millisecond}, providertest.New("forms", providertest.Tool{
		Definition: tool.Definition{Name: "forms_ask"},
		Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			_, err := req.Host.Ask(ctx, provider.Question{Message: "sure?"})
			failed <- err
			return nil, err
		},
	}))
	first := e.round(t, `{}`, "", nil)
	if err := <-failed; tool.CodeOf(err) != tool.Timeout || !strings.Contains(err.Error(), "silence is not consent") {
		t.Errorf("got %v", err)
	}
	if first.RequestState != "" { // else the time was over before the question was on its way
		if r := e.round(t, `{}`, answered(first.RequestState), nil); r.refusal == "" {
			t.Errorf("after it: %+v", r)
		}
	}
}
