package admin

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Explanation is what the pipeline did with one call, as JSON for `hermesd tool call --explain`.
type Explanation struct {
	CallID    string          `json:"call_id"`
	Tool      tool.Name       `json:"tool"`
	GrantedBy []string        `json:"granted_by,omitempty"` // the agent's toolsets that bring the tool, as the operator wrote them
	Arguments json.RawMessage `json:"arguments"`            // as the provider got them, or would have
	Coerced   []Coercion      `json:"coerced,omitempty"`
	Code      tool.Code       `json:"code,omitempty"` // why it failed
	Took      time.Duration   `json:"took_ns"`
	Stages    []pipeline.Step `json:"stages"`
}

// Coercion is one argument that was changed to fit the schema. It names types, never values.
type Coercion struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// ExplainCall implements hermes.admin.v1.
func (s *Server) ExplainCall(req *adminpb.ExplainCallRequest, stream grpc.ServerStreamingServer[adminpb.ExplainCallResponse]) error {
	agent, err := s.agent(req.GetAgent())
	if err != nil {
		return err
	}
	list := []Explanation{}
	result := s.options.Desk.Dispatch(stream.Context(), &frontend.Call{
		Agent: agent, Session: s.options.Desk.Session(agent, req.GetSession(), commandLine), Via: tool.ViaAdmin,
		Name: req.GetName(), Arguments: req.GetArguments(),
		Explain: func(outs []pipeline.Outcome) {
			for i := range outs {
				e := s.explanationOf(&outs[i])
				if entry, known := s.options.Catalog.Snapshot().Find(e.Tool); known {
					e.GrantedBy = agent.Scope.Suppliers(entry.Definition)
				}
				list = append(list, e)
			}
		},
	})
	raw, err := tool.JSON(result)
	if err != nil {
		return tool.Errorf(tool.BadAnswer, "the tool's provider answered something that is no JSON: %w", err)
	}
	told, err := tool.JSON(list)
	if err != nil {
		return err
	}
	return stream.Send(&adminpb.ExplainCallResponse{Result: raw, IsError: result.IsError, Explanation: told})
}

func (s *Server) explanationOf(out *pipeline.Outcome) Explanation {
	e := Explanation{Took: out.Duration, Stages: out.Steps}
	if out.Call != nil {
		e.CallID, e.Tool, e.Arguments = out.Call.ID, out.Call.Tool, redact.JSON(out.Call.Arguments, s.options.Mask)
	}
	for _, c := range out.Coerced {
		e.Coerced = append(e.Coerced, Coercion{s.options.Mask(c.Path), s.options.Mask(c.From), s.options.Mask(c.To)})
	}
	if out.Err != nil {
		e.Code = out.Err.Code
	}
	return e
}

// GetWarnings implements hermes.admin.v1.
func (s *Server) GetWarnings(context.Context, *adminpb.GetWarningsRequest) (*adminpb.GetWarningsResponse, error) {
	r := &adminpb.GetWarningsResponse{}
	if s.options.Warnings != nil {
		for _, w := range s.options.Warnings() {
			r.Warnings = append(r.Warnings, s.shown(w))
		}
	}
	return r, nil
}
