package admin

import (
	"context"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// GetDefinition implements hermes.admin.v1.
func (s *Server) GetDefinition(_ context.Context, req *adminpb.GetDefinitionRequest) (*adminpb.GetDefinitionResponse, error) {
	agent, err := s.agent(req.GetAgent())
	if err != nil {
		return nil, err
	}
	definition, err := s.options.Desk.Describe(agent, req.GetName())
	if err != nil {
		return nil, err
	}
	raw, err := tool.JSON(definition)
	if err != nil {
		return nil, err
	}
	return &adminpb.GetDefinitionResponse{Agent: agent.Name, Attended: agent.Attended, Definition: raw}, nil
}
