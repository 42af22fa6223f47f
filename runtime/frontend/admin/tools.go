package admin

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// commandLine is the client's name in sessions.
const commandLine = "hermesd"

// ListTools implements hermes.admin.v1.
func (s *Server) ListTools(_ context.Context, req *adminpb.ListToolsRequest) (*adminpb.ListToolsResponse, error) {
	agent, err := s.agent(req.GetAgent())
	if err != nil {
		return nil, err
	}
	shown := s.options.Desk.Disclosure.For(agent)
	r := &adminpb.ListToolsResponse{Agent: agent.Name}
	for _, e := range s.options.Catalog.Snapshot().Entries() {
		_, err := shown.View.Find(e.Definition.Name)
		if tool.CodeOf(err) == tool.UnknownTool { // never granted
			continue
		}
		t := s.toolOf(e.Definition)
		t.Deferred, t.Tokens = shown.Deferred(e.Definition.Name), int32(e.Tokens())
		state := e.State()
		t.Condition, t.Reason = string(state.Condition), s.shown(state.Reason)
		if err != nil && state.Condition == catalog.Available {
			t.Condition, t.Reason = "excluded", s.shown(tool.AsError(err).Message)
		}
		r.Tools = append(r.Tools, t)
	}
	return r, nil
}

// Search implements hermes.admin.v1.
func (s *Server) Search(ctx context.Context, req *adminpb.SearchRequest) (*adminpb.SearchResponse, error) {
	agent, err := s.agent(req.GetAgent())
	if err != nil {
		return nil, err
	}
	args := map[string]any{"queries": req.GetQueries()}
	if req.GetLimit() > 0 {
		args["limit"] = req.GetLimit()
	}
	result, err := s.bridged(ctx, agent, func(names catalog.BridgeNames) string { return names.Search }, args)
	if err != nil {
		return nil, err
	}
	r := &adminpb.SearchResponse{Result: result}
	if req.GetExplain() {
		desk := s.options.Desk
		caller := desk.Caller(&frontend.Call{Agent: agent, Session: desk.Session(agent, "", commandLine), Via: tool.ViaAdmin})
		why, err := desk.Bridge.Explain(ctx, caller, req.GetQueries(), int(req.GetLimit()))
		if err != nil {
			return nil, err
		}
		if r.Explanation, err = tool.JSON(why); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Describe implements hermes.admin.v1.
func (s *Server) Describe(ctx context.Context, req *adminpb.DescribeRequest) (*adminpb.DescribeResponse, error) {
	agent, err := s.agent(req.GetAgent())
	if err != nil {
		return nil, err
	}
	result, err := s.bridged(ctx, agent, func(names catalog.BridgeNames) string { return names.Describe }, map[string]any{"names": req.GetNames()})
	if err != nil {
		return nil, err
	}
	return &adminpb.DescribeResponse{Result: result}, nil
}

// bridged calls a bridge tool as the agent would and returns the JSON of its answer.
func (s *Server) bridged(ctx context.Context, agent *disclosure.Agent, name func(catalog.BridgeNames) string, args map[string]any) ([]byte, error) {
	raw, err := tool.JSON(args)
	if err != nil {
		return nil, err
	}
	result := s.options.Desk.Dispatch(ctx, &frontend.Call{
		Agent: agent, Session: s.options.Desk.Session(agent, "", commandLine), Via: tool.ViaAdmin, Arguments: raw,
		Name: name(s.options.Desk.Disclosure.For(agent).Settings.Names),
	})
	if result.IsError {
		return nil, asError(result)
	}
	return []byte(result.Text()), nil
}

// asError reads an error object back.
func asError(r *tool.Result) error {
	var e struct {
		Error string    `json:"error"`
		Code  tool.Code `json:"code"`
	}
	if err := json.Unmarshal([]byte(r.Text()), &e); err != nil || e.Error == "" {
		return tool.Errorf(tool.Internal, "%s", r.Text())
	}
	return tool.Errorf(e.Code, "%s", e.Error)
}

// Call implements hermes.admin.v1.
func (s *Server) Call(req *adminpb.CallRequest, stream grpc.ServerStreamingServer[adminpb.CallEvent]) error {
	agent, err := s.agent(req.GetAgent())
	if err != nil {
		return err
	}
	events := &eventStream{stream: stream}
	started := time.Now()
	result := s.options.Desk.Dispatch(stream.Context(), &frontend.Call{
		Agent: agent, Session: s.options.Desk.Session(agent, req.GetSession(), commandLine), Via: tool.ViaAdmin,
		Name: req.GetName(), Arguments: req.GetArguments(),
		Host: &provider.Host{OnProgress: events.progress, OnLog: events.log},
	})
	raw, err := tool.JSON(result)
	if err != nil {
		return tool.Errorf(tool.BadAnswer, "the tool's provider answered something that is no JSON: %w", err)
	}
	return events.send(&adminpb.CallEvent{Event: &adminpb.CallEvent_Result{Result: &adminpb.Result{
		Result: raw, IsError: result.IsError, Took: durationpb.New(time.Since(started)),
	}}})
}

// eventStream sends what a running call says. A call may speak from several goroutines, and after its end.
type eventStream struct {
	mu     sync.Mutex
	stream grpc.ServerStreamingServer[adminpb.CallEvent]
	err    error // the first failure: nothing is sent after it
	over   bool
}

func (e *eventStream) progress(p tool.Progress) {
	e.tell(&adminpb.CallEvent{Event: &adminpb.CallEvent_Progress{Progress: &adminpb.Progress{Done: p.Done, Total: p.Total, Note: valid(p.Note)}}})
}

func (e *eventStream) log(l tool.LogRecord) {
	e.tell(&adminpb.CallEvent{Event: &adminpb.CallEvent_Log{Log: &adminpb.Log{Level: l.Level, Logger: l.Logger, Data: l.Data}}})
}

func (e *eventStream) tell(event *adminpb.CallEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil && !e.over {
		e.err = e.stream.Send(event)
	}
}

// send sends the last event.
func (e *eventStream) send(event *adminpb.CallEvent) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.err != nil {
		return e.err
	}
	return e.stream.Send(event)
}

// Forget implements hermes.admin.v1.
func (s *Server) Forget(ctx context.Context, req *adminpb.ForgetRequest) (*adminpb.ForgetResponse, error) {
	if req.GetAgent() != "" {
		if _, err := s.agent(req.GetAgent()); err != nil {
			return nil, err
		}
	}
	n, err := s.options.Daemon.Forget(ctx, req.GetAgent(), req.GetTool())
	if err != nil {
		return nil, err
	}
	return &adminpb.ForgetResponse{Lessons: int32(n)}, nil
}
