package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Host plays the daemon for a plugin that asks something of it. A nil function refuses with the code "unsupported". The
// functions may be called at the same time.
type Host struct {
	// AskHuman plays the human.
	AskHuman func(pluginsdk.Question) (pluginsdk.Answer, error)
	// Sample plays the model: params and result are those of MCP's sampling/createMessage.
	Sample func(params json.RawMessage) (json.RawMessage, error)
	// CallTool plays every other tool.
	CallTool func(name string, args json.RawMessage) (*pluginsdk.Result, error)

	mu    sync.Mutex
	store map[string][]byte // of plugins in this process; a binary's store is the real one
}

// Accept is an answer of a human who filled in the form with these values.
func Accept(values any) pluginsdk.Answer {
	raw, err := json.Marshal(values)
	if err != nil {
		panic("plugintest: the values of Accept do not marshal: " + err.Error())
	}
	return pluginsdk.Answer{Action: pluginsdk.Accepted, Content: raw}
}

// Choose is the answer of a human who chose one of [pluginsdk.Question.Choices].
func Choose(choice string) pluginsdk.Answer { return Accept(map[string]string{"choice": choice}) }

// Decline is the answer of a human who says no.
func Decline() pluginsdk.Answer { return pluginsdk.Answer{Action: pluginsdk.Declined} }

func unsupported(what string) *pluginsdk.Error {
	return pluginsdk.Errorf(pluginsdk.Unsupported, "the test's host has no %s", what)
}

func (h *Host) ask(q pluginsdk.Question) (pluginsdk.Answer, error) {
	if h.AskHuman == nil {
		return pluginsdk.Answer{}, unsupported("AskHuman")
	}
	return h.AskHuman(q)
}

func (h *Host) sample(params json.RawMessage) (json.RawMessage, error) {
	if h.Sample == nil {
		return nil, unsupported("Sample")
	}
	return h.Sample(params)
}

func (h *Host) callTool(name string, args json.RawMessage) (*pluginsdk.Result, error) {
	if h.CallTool == nil {
		return nil, unsupported("CallTool")
	}
	return h.CallTool(name, args)
}

// answer answers a request of a plugin in this process as the daemon would.
func (h *Host) answer(granted []string) func(context.Context, *pb.HostRequest) *pb.AnswerRequest {
	return func(_ context.Context, req *pb.HostRequest) *pb.AnswerRequest {
		answer, err := h.decide(req, granted)
		if err != nil {
			var e *pluginsdk.Error
			if !errors.As(err, &e) {
				e = pluginsdk.Errorf(pluginsdk.ToolFailed, "%w", err)
			}
			return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Error{Error: &pb.Error{
				Code: string(e.Code), Message: e.Message, Retryable: e.Retryable, Blame: e.Blame, Pointer: e.Pointer,
			}}}
		}
		return answer
	}
}

func (h *Host) decide(req *pb.HostRequest, granted []string) (*pb.AnswerRequest, error) {
	allowed := func(kind string) error {
		if slices.Contains(granted, kind) {
			return nil
		}
		return pluginsdk.Errorf(pluginsdk.NotGranted, "the operator did not grant %s", kind)
	}
	switch r := req.GetRequest().(type) {
	case *pb.HostRequest_AskHuman:
		if err := allowed(pluginsdk.CanAskHuman); err != nil {
			return nil, err
		}
		a, err := h.ask(pluginsdk.Question{Message: r.AskHuman.GetMessage(), Schema: r.AskHuman.GetSchema(), Choices: r.AskHuman.GetChoices()})
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{AskHuman: &pb.AskHumanAnswer{Action: a.Action, Content: a.Content}}}, err
	case *pb.HostRequest_Sample:
		if err := allowed(pluginsdk.CanSample); err != nil {
			return nil, err
		}
		raw, err := h.sample(r.Sample.GetParams())
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Sample{Sample: raw}}, err
	case *pb.HostRequest_CallTool:
		if err := allowed(pluginsdk.CanCallTool); err != nil {
			return nil, err
		}
		result, err := h.callTool(r.CallTool.GetName(), r.CallTool.GetArguments())
		if err != nil {
			return nil, err
		}
		p, err := protoResult(result)
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_CallTool{CallTool: p}}, err
	case *pb.HostRequest_Store:
		if err := allowed(pluginsdk.CanStore); err != nil {
			return nil, err
		}
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Store{Store: h.keep(r.Store)}}, nil
	}
	return nil, pluginsdk.Errorf(pluginsdk.Unsupported, "a host request of no known kind")
}

// keep is the key space.
func (h *Host) keep(op *pb.Store) *pb.StoreAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.store == nil {
		h.store = map[string][]byte{}
	}
	a := &pb.StoreAnswer{}
	switch op.GetOperation() {
	case pb.Store_OPERATION_GET:
		a.Value, a.Found = h.store[op.GetKey()]
	case pb.Store_OPERATION_PUT:
		h.store[op.GetKey()] = op.GetValue()
	case pb.Store_OPERATION_DELETE:
		delete(h.store, op.GetKey())
	case pb.Store_OPERATION_LIST:
		for key := range h.store {
			if strings.HasPrefix(key, op.GetKey()) {
				a.Keys = append(a.Keys, key)
			}
		}
		sort.Strings(a.Keys)
	}
	return a
}

// provider is the host as hermesd's own plugin host wants it.
func (h *Host) provider(o *Outcome) *provider.Host {
	var mu sync.Mutex
	call := func(_ context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error) {
		r, err := h.callTool(name, args)
		if err != nil {
			return nil, toolError(err)
		}
		return toolResult(r)
	}
	return &provider.Host{
		OnProgress: func(p tool.Progress) {
			mu.Lock()
			defer mu.Unlock()
			o.Progress = append(o.Progress, Progress{p.Done, p.Total, p.Note})
		},
		OnLog: func(l tool.LogRecord) {
			mu.Lock()
			defer mu.Unlock()
			o.Logs = append(o.Logs, Log{l.Level, l.Data})
		},
		OnAsk: func(_ context.Context, q provider.Question) (provider.Answer, error) {
			a, err := h.ask(pluginsdk.Question{Message: q.Message, Schema: q.Schema, Choices: choices(q.Schema)})
			return provider.Answer{Action: a.Action, Content: a.Content}, toolError(err)
		},
		OnSample: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
			raw, err := h.sample(params)
			return raw, toolError(err)
		},
		OnCallTool: call,
		OnDelegate: func(tool.Name) *provider.Delegate { return &provider.Delegate{CallTool: call} },
	}
}

// choices reads the shorthand of plain choices back from the form that the host made of it.
func choices(schema json.RawMessage) []string {
	var form struct {
		Properties struct {
			Choice struct {
				Enum []string `json:"enum"`
			} `json:"choice"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &form) != nil {
		return nil
	}
	return form.Properties.Choice.Enum
}

// toolError is an error of the test's functions as the daemon's packages have it.
func toolError(err error) error {
	var e *pluginsdk.Error
	if !errors.As(err, &e) {
		return err
	}
	t := tool.Errorf(tool.Code(e.Code), "%s", e.Message)
	t.Retryable, t.Pointer = e.Retryable, e.Pointer
	return t
}

func structured(r *pluginsdk.Result) (json.RawMessage, error) {
	if r.Structured == nil {
		return nil, nil
	}
	return json.Marshal(r.Structured)
}

func protoResult(r *pluginsdk.Result) (*pb.Result, error) {
	p := &pb.Result{IsError: r.IsError}
	for _, c := range r.Content {
		p.Content = append(p.Content, c)
	}
	var err error
	p.Structured, err = structured(r)
	return p, err
}

func toolResult(r *pluginsdk.Result) (*tool.Result, error) {
	t := &tool.Result{IsError: r.IsError}
	for _, c := range r.Content {
		t.Content = append(t.Content, tool.Content(c))
	}
	var err error
	t.Structured, err = structured(r)
	return t, err
}
