package pluginsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// Question asks a human something.
type Question struct {
	Message string
	// Schema is a flat JSON Schema of the form to fill in, as MCP's form elicitation has it: an object whose properties are
	// strings, numbers, booleans and enums. nil: Choices.
	Schema json.RawMessage
	// Choices are a shorthand for a form with one field "choice" of these values.
	Choices []string
}

// The actions of an [Answer].
const (
	Accepted  = "accept"
	Declined  = "decline"
	Dismissed = "cancel"
)

// Answer is what the human did.
type Answer struct {
	Action  string          // [Accepted], [Declined] or [Dismissed]
	Content json.RawMessage // the form's values as a JSON object; only when accepted
}

// Choice returns the value that was chosen among [Question.Choices], "" if none was.
func (a Answer) Choice() string {
	var c struct {
		Choice string `json:"choice"`
	}
	if a.Action != Accepted || json.Unmarshal(a.Content, &c) != nil {
		return ""
	}
	return c.Choice
}

// AskHuman asks the human behind the agent and waits. It needs the capability [CanAskHuman]; where nobody can be asked
// (see [CallInfo.Attended]) the error has the code [Unsupported].
func AskHuman(ctx context.Context, q Question) (Answer, error) {
	a, err := ask(ctx, CanAskHuman, &pb.HostRequest{Request: &pb.HostRequest_AskHuman{
		AskHuman: &pb.AskHuman{Message: valid(q.Message), Schema: q.Schema, Choices: q.Choices},
	}})
	if err != nil {
		return Answer{}, err
	}
	h := a.GetAskHuman()
	if h == nil {
		return Answer{}, errWrongAnswer
	}
	return Answer{Action: h.GetAction(), Content: h.GetContent()}, nil
}

// CallTool calls another tool as the agent of the running call, through the same checks as the agent's own calls. It
// needs the capability [CanCallTool]. args is marshalled to a JSON object; nil means no arguments.
func CallTool(ctx context.Context, name string, args any) (*Result, error) {
	result, _, err := callTool(ctx, name, args, &pb.HostRequest{}, false)
	return result, err
}

// Delegation lets the plugin call one tool as one agent when no call of that agent runs: from [Plugin.Run], for example.
// Keep it as the secret that it is; [Store] is a place for it. It ends when an operator revokes it, when the agent may no
// longer use the tool in whose call it was issued, and when the daemon is started anew; a call then fails with [NotGranted].
type Delegation struct {
	Tool  string `json:"tool"`
	Token string `json:"token"`
}

// Delegate is [CallTool] that asks for a delegation besides. There is none if the call fails.
func Delegate(ctx context.Context, name string, args any) (*Result, Delegation, error) {
	result, token, err := callTool(ctx, name, args, &pb.HostRequest{}, true)
	if err != nil {
		return nil, Delegation{}, err
	}
	return result, Delegation{Tool: name, Token: token}, nil
}

// Call calls the delegation's tool. ctx must come from the SDK.
func (d Delegation) Call(ctx context.Context, args any) (*Result, error) {
	result, _, err := callTool(ctx, d.Tool, args, &pb.HostRequest{Delegation: d.Token}, false)
	return result, err
}

func callTool(ctx context.Context, name string, args any, req *pb.HostRequest, delegate bool) (*Result, string, error) {
	if args == nil {
		args = struct{}{}
	}
	raw, err := compact(args)
	if err != nil {
		return nil, "", fmt.Errorf("the arguments of %s cannot be encoded: %w", name, err)
	}
	req.Request = &pb.HostRequest_CallTool{CallTool: &pb.CallTool{Name: name, Arguments: raw, Delegate: delegate}}
	a, err := ask(ctx, CanCallTool, req)
	if err != nil {
		return nil, "", err
	}
	if a.GetCallTool() == nil {
		return nil, "", errWrongAnswer
	}
	result, err := resultFromProto(a.GetCallTool())
	return result, a.GetDelegation(), err
}

// Sample lets the agent's model complete something. params are those of MCP's sampling/createMessage and the answer is
// its result, both as JSON. It needs the capability [CanSample].
func Sample(ctx context.Context, params any) (json.RawMessage, error) {
	raw, err := compact(params)
	if err != nil {
		return nil, fmt.Errorf("the sampling parameters cannot be encoded: %w", err)
	}
	a, err := ask(ctx, CanSample, &pb.HostRequest{Request: &pb.HostRequest_Sample{Sample: &pb.Sample{Params: raw}}})
	if err != nil {
		return nil, err
	}
	if len(a.GetSample()) == 0 {
		return nil, errWrongAnswer
	}
	return a.GetSample(), nil
}

// Store is a small key space of the plugin's own, kept by the host outside of [StateDir]: keys of at most 256 bytes, values of 1
// MiB. It needs the capability [CanStore]. Keys are not scoped to agents; put the agent into the key where that matters.
type Store struct{}

// Get returns a value and whether it is there.
func (Store) Get(ctx context.Context, key string) ([]byte, bool, error) {
	a, err := store(ctx, pb.Store_OPERATION_GET, key, nil)
	return a.GetValue(), a.GetFound(), err
}

// Put keeps a value.
func (Store) Put(ctx context.Context, key string, value []byte) error {
	_, err := store(ctx, pb.Store_OPERATION_PUT, key, value)
	return err
}

// Delete forgets a key; that it is not there is no error.
func (Store) Delete(ctx context.Context, key string) error {
	_, err := store(ctx, pb.Store_OPERATION_DELETE, key, nil)
	return err
}

// List returns the keys that begin with prefix.
func (Store) List(ctx context.Context, prefix string) ([]string, error) {
	a, err := store(ctx, pb.Store_OPERATION_LIST, prefix, nil)
	return a.GetKeys(), err
}

func store(ctx context.Context, op pb.Store_Operation, key string, value []byte) (*pb.StoreAnswer, error) {
	a, err := ask(ctx, CanStore, &pb.HostRequest{Request: &pb.HostRequest_Store{
		Store: &pb.Store{Operation: op, Key: key, Value: value},
	}})
	if err != nil {
		return nil, err
	}
	if a.GetStore() == nil {
		return nil, errWrongAnswer
	}
	return a.GetStore(), nil
}

var errWrongAnswer = errors.New("the host answered something else than was asked")

// ask makes a host request. What the plugin does not declare is not even sent: the operator could not grant it.
func ask(ctx context.Context, capability string, req *pb.HostRequest) (*pb.AnswerRequest, error) {
	s := serve.FromContext(ctx)
	if s == nil {
		return nil, errForeignContext
	}
	if !slices.Contains(s.Capabilities(), capability) {
		return nil, Errorf(NotGranted, "the plugin does not declare the capability %q; its author must add it to Plugin.Capabilities", capability)
	}
	a, err := s.Ask(ctx, req)
	switch {
	case errors.Is(err, serve.ErrNoHost):
		return nil, Errorf(Unsupported, "%s: %w", capability, err)
	case err != nil:
		return nil, err
	case a.GetError() != nil:
		return nil, fromProto(a.GetError())
	}
	return a, nil
}
