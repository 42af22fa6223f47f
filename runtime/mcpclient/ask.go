package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxAsking bounds the questions of one server that wait for an answer at the same time.
	maxAsking = 16
	// maxOwed bounds the requests of one server that are being answered, questions and refusals among them. A server that
	// has more does not read the answers.
	maxOwed = 64
)

// asker answers one kind of question of a server, given the params of the request, with its result.
type asker func(ctx context.Context, host *provider.Host, params json.RawMessage) (json.RawMessage, error)

// answer puts a question of the server to the caller of the call that it belongs to, and sends the answer back.
func (l *line) answer(id, params json.RawMessage, origin *call, ask asker) {
	if rawjson.IsNull(id) {
		return // a notification by this name means nothing
	}
	c, err := l.belongsTo(origin)
	if err == nil && l.asking.Add(1) > maxAsking {
		l.asking.Add(-1)
		err = fmt.Errorf("%d questions are waiting already; ask fewer at a time", maxAsking)
	}
	if err != nil {
		l.reply(id, func() (json.RawMessage, error) { return nil, err })
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	l.mu.Lock()
	l.asked[string(id)] = cancel
	l.mu.Unlock()
	done := func() {
		l.mu.Lock()
		delete(l.asked, string(id))
		l.mu.Unlock()
		cancel()
		l.asking.Add(-1)
	}
	if !l.reply(id, func() (json.RawMessage, error) {
		defer done()
		return ask(ctx, c.host, params)
	}) {
		done()
	}
}

// reply answers a request of the server beside the reading of what else it sends. It reports whether it will.
func (l *line) reply(id json.RawMessage, work func() (json.RawMessage, error)) bool {
	if l.owed.Add(1) > maxOwed {
		l.owed.Add(-1)
		l.noise.Warn("the server asks for more than it takes answers; a request of it is left unanswered", "waiting", maxOwed)
		return false
	}
	paid := func() { l.owed.Add(-1) }
	if !l.goWork(func() {
		defer paid()
		result, err := work()
		l.respond(id, result, err)
	}) {
		paid()
		return false
	}
	return true
}

// request answers what a server may ask without a call being the reason.
func (l *line) request(method string, id json.RawMessage) {
	l.reply(id, func() (json.RawMessage, error) {
		switch method {
		case "ping":
			return json.RawMessage(`{}`), nil
		case "roots/list":
			// No empty list: a server might take it for the end of the folders that its arguments give it.
			return nil, tool.Errorf(tool.Unsupported, "hermesd offers no roots to a server of a protocol before 2026-07-28: it serves many clients, and a server keeps the roots of its session")
		default:
			return nil, tool.Errorf(tool.Unsupported, "hermesd has no method %q", bounded(method, 100))
		}
	})
}

// withdrawn cancels a question that the server no longer wants answered.
func (l *line) withdrawn(params json.RawMessage) {
	var id json.RawMessage
	rawjson.Members(params, func(key string, value json.RawMessage) {
		if key == "requestId" {
			id = value
		}
	})
	l.mu.Lock()
	cancel, ok := l.asked[string(id)]
	l.mu.Unlock()
	if ok {
		cancel()
	}
}

// respond answers a request of the server.
func (l *line) respond(id, result json.RawMessage, failure error) {
	message := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{Version: "2.0", ID: id, Result: result}
	if failure != nil {
		message.Result, message.Error = nil, &jsonrpc.Error{Code: refusalCode(failure), Message: failure.Error()}
	}
	data, err := json.Marshal(message)
	if err != nil {
		l.logger.Warn("an answer to the server is not JSON", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, cancelTime)
	defer cancel()
	if _, err := l.send(ctx, &frame{data: data}); err != nil {
		l.logger.Debug("the server's question could not be answered", "error", err)
	}
}

// refusalCode is "method not found" for what the agent's side cannot do, as MCP has it for a missing capability.
func refusalCode(err error) int64 {
	if errors.Is(err, &tool.Error{Code: tool.Unsupported}) {
		return jsonrpc.CodeMethodNotFound
	}
	return jsonrpc.CodeInternalError
}

// elicit passes elicitation/create (MCP 2025-11-25: form and URL mode) to the human behind the agent.
func elicit(ctx context.Context, host *provider.Host, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitationId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("elicitation/create: the params cannot be read: %w", err)
	}
	a, err := host.Ask(ctx, provider.Question{Message: p.Message, Schema: p.Schema, URL: p.URL, ID: p.ID})
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{a.Action, a.Content})
}

// sample passes sampling/createMessage to the agent's model.
func sample(ctx context.Context, host *provider.Host, params json.RawMessage) (json.RawMessage, error) {
	return host.Sample(ctx, params)
}

// awaitCompletion registers for the end of an elicitation by URL, which the server tells by its id.
func (l *line) awaitCompletion(id string) (completed <-chan struct{}, forget func()) {
	ch := make(chan struct{})
	l.mu.Lock()
	l.complete[id] = ch
	l.mu.Unlock()
	return ch, func() {
		l.mu.Lock()
		delete(l.complete, id)
		l.mu.Unlock()
	}
}

func (l *line) elicitationComplete(params json.RawMessage) {
	var p struct {
		ID string `json:"elicitationId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	l.mu.Lock()
	ch, ok := l.complete[p.ID]
	delete(l.complete, p.ID)
	l.mu.Unlock()
	if ok {
		close(ch)
	}
}
