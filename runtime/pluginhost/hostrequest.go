package pluginhost

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// answerTimeout bounds the RPC that carries an answer to the plugin.
const answerTimeout = 5 * time.Second

// requests answers the host requests of one call, or those made outside calls, several at once.
type requests struct {
	provider *Provider
	instance *instance
	slots    chan struct{}
	running  sync.WaitGroup
}

// answer works on a request apart from the stream that it came on, and waits only for a free place. call is nil outside
// a call.
func (r *requests) answer(ctx context.Context, req *pb.HostRequest, call *provider.Request) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	r.running.Go(func() {
		defer func() { <-r.slots }()
		answer := r.decide(ctx, req, call)
		answer.Id = req.GetId()
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		if _, err := r.instance.Answer(ctx, answer); err != nil && ctx.Err() == nil {
			r.provider.opts.Logger.Warn("plugin did not take the answer to its request", "error", rpcError("Answer", err))
		}
	})
}

func (r *requests) wait() { r.running.Wait() }

// decide carries a request out if the plugin declared it and the operator granted it.
func (r *requests) decide(ctx context.Context, req *pb.HostRequest, call *provider.Request) *pb.AnswerRequest {
	kind := kindOf(req)
	if kind == "" {
		return refusal(tool.Errorf(tool.BadRequest, "a host request of no known kind"))
	}
	o := r.provider.opts
	switch {
	case !o.granted(kind):
		o.Logger.Warn("plugin's request refused: not granted", "request", kind)
		return refusal(tool.Errorf(tool.NotGranted, "the operator did not grant this: add %q to grant in the block of plugin %q", kind, o.Name))
	case !capable(r.instance.describe, kind):
		o.Logger.Warn("plugin's request refused: not declared", "request", kind)
		return refusal(tool.Errorf(tool.NotGranted, "the plugin does not declare the capability %q", kind))
	case kind == grantStore:
		return r.provider.keys.answer(ctx, req.GetStore())
	case kind == grantCall:
		return r.callTool(ctx, req, call)
	case call == nil:
		return refusal(tool.Errorf(tool.Unsupported, "%s is possible only while a call runs", kind))
	}
	if kind == grantAsk {
		return askHuman(ctx, call.Host, req.GetAskHuman())
	}
	return sample(ctx, call.Host, req.GetSample())
}

func kindOf(req *pb.HostRequest) string {
	switch req.GetRequest().(type) {
	case *pb.HostRequest_AskHuman:
		return grantAsk
	case *pb.HostRequest_CallTool:
		return grantCall
	case *pb.HostRequest_Sample:
		return grantSample
	case *pb.HostRequest_Store:
		return grantStore
	}
	return ""
}

func askHuman(ctx context.Context, host *provider.Host, ask *pb.AskHuman) *pb.AnswerRequest {
	question := provider.Question{Message: ask.GetMessage(), Schema: ask.GetSchema()}
	switch {
	case len(ask.GetSchema()) > 0 && !isObject(ask.GetSchema()):
		return refusal(tool.Errorf(tool.BadRequest, "the schema of the form is not a JSON object"))
	case len(ask.GetSchema()) == 0 && len(ask.GetChoices()) > 0:
		question.Schema = choiceSchema(ask.GetChoices())
	case len(ask.GetSchema()) == 0:
		question.Schema = nil
	}
	answer, err := host.Ask(ctx, question)
	if err != nil {
		return refusal(err)
	}
	return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{
		AskHuman: &pb.AskHumanAnswer{Action: answer.Action, Content: answer.Content},
	}}
}

// choiceSchema is the form behind the shorthand of plain choices: one field "choice".
func choiceSchema(choices []string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{
		"type":       "object",
		"properties": map[string]any{"choice": map[string]any{"type": "string", "enum": choices}},
		"required":   []string{"choice"},
	})
	if err != nil {
		panic("pluginhost: strings did not marshal: " + err.Error())
	}
	return raw
}

func sample(ctx context.Context, host *provider.Host, ask *pb.Sample) *pb.AnswerRequest {
	if !isObject(ask.GetParams()) {
		return refusal(tool.Errorf(tool.BadRequest, "the params are not a JSON object"))
	}
	raw, err := host.Sample(ctx, ask.GetParams())
	if err != nil {
		return refusal(err)
	}
	return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Sample{Sample: raw}}
}

// refusal is an error as the plugin reads it.
func refusal(err error) *pb.AnswerRequest {
	e := tool.AsError(err)
	return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Error{Error: &pb.Error{
		Code: string(e.Code), Message: e.Message, Retryable: e.Retryable, Blame: string(e.Blame), Pointer: e.Pointer,
	}}}
}
