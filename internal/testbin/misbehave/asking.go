package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

func sortedNames() []string { return slices.Sorted(maps.Keys(handlers)) }

// roundTrip sends a host request on the call's stream and waits for its answer.
func (s *service) roundTrip(ctx context.Context, r *pb.HostRequest, out send) *pb.AnswerRequest {
	return s.exchange(ctx, r, func(r *pb.HostRequest) {
		out(&pb.InvokeResponse{Event: &pb.InvokeResponse_HostRequest{HostRequest: r}})
	})
}

func (s *service) exchange(ctx context.Context, r *pb.HostRequest, send func(*pb.HostRequest)) *pb.AnswerRequest {
	answer := make(chan *pb.AnswerRequest, 1)
	s.mu.Lock()
	r.Id = strconv.Itoa(len(s.answers)) + "-" + strconv.FormatInt(s.checks.Add(1), 10)
	s.answers[r.GetId()] = answer
	s.mu.Unlock()
	send(r)
	select {
	case a := <-answer:
		a.Id = ""
		return a
	case <-ctx.Done():
		return &pb.AnswerRequest{}
	}
}

// ask is a tool that makes one host request and answers with what it got.
func ask(template *pb.HostRequest) handler {
	return func(s *service, ctx context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
		return text(show(s.roundTrip(ctx, proto.CloneOf(template), out)))
	}
}

func show(a *pb.AnswerRequest) string {
	switch x := a.GetAnswer().(type) {
	case *pb.AnswerRequest_Error:
		return fmt.Sprintf("error %s: %s", x.Error.GetCode(), x.Error.GetMessage())
	case *pb.AnswerRequest_AskHuman:
		return fmt.Sprintf("%s %s", x.AskHuman.GetAction(), x.AskHuman.GetContent())
	case *pb.AnswerRequest_CallTool:
		return fmt.Sprintf("called: %s", x.CallTool.GetContent())
	case *pb.AnswerRequest_Sample:
		return fmt.Sprintf("sampled: %s", x.Sample)
	case *pb.AnswerRequest_Store:
		return fmt.Sprintf("found %v, value %q, keys %q", x.Store.GetFound(), x.Store.GetValue(), x.Store.GetKeys())
	}
	return protojson.Format(a)
}

// store makes the store request in its arguments, on the call's stream or on Watch: {"operation": 1, "key": "k", "size": bytes
// of the value, "outside": true}.
func store(s *service, ctx context.Context, req *pb.InvokeRequest, out send) *pb.InvokeResponse {
	var args struct {
		Operation int32
		Key       string
		Size      int
		Outside   bool
	}
	if err := json.Unmarshal(req.GetArguments(), &args); err != nil {
		return failure(&pb.Error{Code: "invalid_arguments", Message: err.Error()})
	}
	ask := &pb.HostRequest{Request: &pb.HostRequest_Store{Store: &pb.Store{
		Operation: pb.Store_Operation(args.Operation), Key: args.Key, Value: make([]byte, args.Size),
	}}}
	if args.Outside {
		return text(show(s.askOutside(ctx, ask)))
	}
	return text(show(s.roundTrip(ctx, ask, out)))
}

// callNamed calls the tool in its arguments, {"tool": "...", "delegate": true}, and answers with what that answered and the
// delegation.
func callNamed(s *service, ctx context.Context, req *pb.InvokeRequest, out send) *pb.InvokeResponse {
	var args struct {
		Tool     string
		Delegate bool
	}
	if err := json.Unmarshal(req.GetArguments(), &args); err != nil {
		return failure(&pb.Error{Code: "invalid_arguments", Message: err.Error()})
	}
	a := s.roundTrip(ctx, &pb.HostRequest{Request: &pb.HostRequest_CallTool{CallTool: &pb.CallTool{Name: args.Tool, Delegate: args.Delegate}}}, out)
	return text(show(a) + " " + a.GetDelegation())
}

// delegate calls the tool "other" and answers with the delegation that came with its result.
func delegate(s *service, ctx context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
	a := s.roundTrip(ctx, &pb.HostRequest{Request: &pb.HostRequest_CallTool{CallTool: &pb.CallTool{Name: "other", Delegate: true}}}, out)
	if a.GetError() != nil {
		return text(show(a))
	}
	return text(a.GetDelegation())
}

// callOutside calls a tool outside its own call, with the delegation in its arguments: {"token": "...", "tool": "other"}.
func callOutside(s *service, ctx context.Context, req *pb.InvokeRequest, _ send) *pb.InvokeResponse {
	var args struct{ Token, Tool string }
	if err := json.Unmarshal(req.GetArguments(), &args); err != nil {
		return failure(&pb.Error{Code: "invalid_arguments", Message: err.Error()})
	}
	ask := &pb.HostRequest{Delegation: args.Token, Request: &pb.HostRequest_CallTool{CallTool: &pb.CallTool{Name: args.Tool}}}
	return text(show(s.askOutside(ctx, ask)))
}

// askOutside sends a host request on Watch and waits for its answer.
func (s *service) askOutside(ctx context.Context, ask *pb.HostRequest) *pb.AnswerRequest {
	return s.exchange(ctx, ask, func(r *pb.HostRequest) {
		select {
		case s.outside <- r:
		case <-ctx.Done():
		}
	})
}
