package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxRounds bounds how often one request may ask for input (2026-07-28).
const maxRounds = 10

// conversation is where a request stands that a server of 2026-07-28 answers by questions. It outlives the connection: the
// next round may go to a server that was started anew, which has all that it needs in the state that it gave.
type conversation struct {
	rounds         int
	answers, state json.RawMessage
	opened         bool   // the pages that an older server wanted opened
	taken          func() // called when the server goes on with the call as a task; may be nil
}

// converse runs a request to its end, with the questions that come between.
func (s *session) converse(ctx context.Context, r *request, talk *conversation, read func(json.RawMessage) (*outcome, error)) (*outcome, error) {
	params := r.params
	r.params = func(b *bytes.Buffer) error {
		if err := params(b); err != nil {
			return err
		}
		return talk.write(b)
	}
	for ; talk.rounds < maxRounds; talk.rounds++ {
		raw, err := s.line.roundTrip(ctx, r)
		if asked := urlsOf(err); asked != nil && !talk.opened {
			talk.opened = true
			if err := s.openPages(ctx, r.host, asked); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		o, err := read(raw)
		if err != nil {
			return nil, tool.Errorf(tool.BadAnswer, "server %q answered against its protocol: %w; the call may have run", s.p.opts.Name, err)
		}
		if o.task != nil {
			return s.follow(ctx, r, talk, o.task)
		}
		if o.inputs == nil {
			return o, nil
		}
		if talk.answers, err = fulfil(ctx, r.host, o.inputs); err != nil {
			return nil, err
		}
		talk.state = o.state
		if len(o.inputs) == 0 { // a server that sheds load: it asks for nothing but a later try
			if err := sleep(ctx, time.Second); err != nil {
				return nil, err
			}
		}
	}
	return nil, tool.Errorf(tool.ToolFailed, "server %q asked for input %d times without coming to an end; the call was given up", s.p.opts.Name, maxRounds)
}

// write adds what the next round carries to the members of params.
func (c *conversation) write(b *bytes.Buffer) error {
	if c.answers != nil {
		b.WriteString(`,"inputResponses":`)
		b.Write(c.answers)
	}
	if c.state != nil {
		b.WriteString(`,"requestState":`)
		return json.Compact(b, c.state)
	}
	return nil
}

// fulfil answers the questions in a result, as the object of answers that the next round carries.
func fulfil(ctx context.Context, host *provider.Host, inputs map[string]provider.Input) (json.RawMessage, error) {
	if host != nil && host.OnInputs != nil && len(inputs) > 0 {
		answers, err := host.OnInputs(ctx, inputs)
		if err != nil {
			return nil, tool.AsError(err)
		}
		return json.Marshal(answers)
	}
	answers := map[string]json.RawMessage{}
	for id, in := range inputs {
		var ask asker
		switch in.Method {
		case "elicitation/create":
			ask = elicit
		case "sampling/createMessage":
			ask = sample
		case "roots/list":
			ask = roots
		default:
			return nil, tool.Errorf(tool.Unsupported, "the tool asks for %q, which nothing here can answer", bounded(in.Method, 100))
		}
		answer, err := ask(ctx, host, in.Params)
		if err != nil {
			return nil, tool.AsError(err)
		}
		answers[id] = answer
	}
	return json.Marshal(answers)
}

func roots(ctx context.Context, host *provider.Host, _ json.RawMessage) (json.RawMessage, error) {
	return host.Roots(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readQuestion reports whether a result is a question, and takes it apart.
func (o *outcome) readQuestion(raw json.RawMessage) (bool, error) {
	var inputs json.RawMessage
	needsInput := false
	rawjson.Members(raw, func(key string, value json.RawMessage) {
		switch key {
		case "resultType":
			needsInput = string(value) == `"input_required"`
		case "inputRequests":
			inputs = value
		case "requestState":
			o.state = value
		}
	})
	if !needsInput && inputs == nil {
		return false, nil
	}
	return true, o.readInputs(inputs)
}

func (o *outcome) readInputs(inputs json.RawMessage) error {
	o.inputs = map[string]provider.Input{}
	if rawjson.IsNull(inputs) {
		return nil
	}
	if err := json.Unmarshal(inputs, &o.inputs); err != nil {
		return errors.New("the result asks for input that cannot be read")
	}
	return nil
}
