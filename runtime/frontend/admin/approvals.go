package admin

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Approvals are the requests that wait for a human, and the grants. What is any has a JSON form.
type Approvals interface {
	// Pending lists what waits for an answer, oldest first.
	Pending() []any
	// Watch streams what is open now and every change after that, until stop. The channel is closed when the watcher is too
	// slow, or the daemon stops.
	Watch() (events <-chan any, stop func())
	// Answer answers one request; the error says why that cannot be done.
	Answer(id string, d *ApprovalAnswer) error
	// Granted lists the grants that hold, oldest first.
	Granted() []any
	Revoke(ctx context.Context, id string) error
}

// ApprovalAnswer is a human's answer.
type ApprovalAnswer struct {
	Choice  string // once, session, always or deny
	Reason  string
	Pattern map[string]string // nil takes the one that was shown
	By      string            // who answers
}

var errNoApprovals = tool.Errorf(tool.Unsupported, "this daemon has no approvals")

// ListApprovals implements hermes.admin.v1.
func (s *Server) ListApprovals(context.Context, *adminpb.ListApprovalsRequest) (*adminpb.ListApprovalsResponse, error) {
	if s.options.Approvals == nil {
		return nil, errNoApprovals
	}
	pending, err := encodeAll(s.options.Approvals.Pending())
	return &adminpb.ListApprovalsResponse{Pending: pending}, err
}

// WatchApprovals implements hermes.admin.v1.
func (s *Server) WatchApprovals(_ *adminpb.WatchApprovalsRequest, stream grpc.ServerStreamingServer[adminpb.ApprovalEvent]) error {
	if s.options.Approvals == nil {
		return errNoApprovals
	}
	if _, err := s.approver(stream.Context(), ""); err != nil {
		return err
	}
	events, stop := s.options.Approvals.Watch()
	defer stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return tool.Errorf(tool.ShuttingDown, "the watch has ended: the daemon is stopping, or this end was too slow")
			}
			raw, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if err := stream.Send(&adminpb.ApprovalEvent{Event: raw}); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// AnswerApproval implements hermes.admin.v1.
func (s *Server) AnswerApproval(ctx context.Context, req *adminpb.AnswerApprovalRequest) (*adminpb.AnswerApprovalResponse, error) {
	if s.options.Approvals == nil {
		return nil, errNoApprovals
	}
	by, err := s.approver(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	answer := &ApprovalAnswer{Choice: req.GetChoice(), Reason: req.GetReason(), Pattern: req.GetPattern(), By: by}
	if err := s.options.Approvals.Answer(req.GetId(), answer); err != nil {
		return nil, tool.Errorf(tool.BadRequest, "%w", err)
	}
	return &adminpb.AnswerApprovalResponse{}, nil
}

// ListGrants implements hermes.admin.v1.
func (s *Server) ListGrants(context.Context, *adminpb.ListGrantsRequest) (*adminpb.ListGrantsResponse, error) {
	if s.options.Approvals == nil {
		return nil, errNoApprovals
	}
	grants, err := encodeAll(s.options.Approvals.Granted())
	return &adminpb.ListGrantsResponse{Grants: grants}, err
}

// RevokeGrant implements hermes.admin.v1.
func (s *Server) RevokeGrant(ctx context.Context, req *adminpb.RevokeGrantRequest) (*adminpb.RevokeGrantResponse, error) {
	if s.options.Approvals == nil {
		return nil, errNoApprovals
	}
	if _, err := s.approver(ctx, req.GetId()); err != nil {
		return nil, err
	}
	if err := s.options.Approvals.Revoke(ctx, req.GetId()); err != nil {
		return nil, tool.Errorf(tool.BadRequest, "%w", err)
	}
	return &adminpb.RevokeGrantResponse{}, nil
}

func encodeAll(list []any) ([][]byte, error) {
	out := make([][]byte, len(list))
	for i, v := range list {
		raw, err := tool.JSON(v)
		if err != nil {
			return nil, err
		}
		out[i] = raw
	}
	return out, nil
}
