package admin

import (
	"context"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Approvals are the requests that wait for a human, and the grants, each as a JSON object: this front end passes them on to
// programs that know their types.
type Approvals interface {
	// Pending lists what waits for an answer, oldest first.
	Pending() ([][]byte, error)
	// Watch hands over what is open now and every change after that, until ctx ends or fn fails. It returns nil when the
	// watcher was too slow, or the daemon stops.
	Watch(ctx context.Context, fn func(event []byte) error) error
	// Answer answers one request; the error says why that cannot be done.
	Answer(id string, d *ApprovalAnswer) error
	// Granted lists the grants that hold, oldest first.
	Granted() ([][]byte, error)
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
	pending, err := s.options.Approvals.Pending()
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
	err := s.options.Approvals.Watch(stream.Context(), func(event []byte) error {
		return stream.Send(&adminpb.ApprovalEvent{Event: event})
	})
	if err == nil {
		return tool.Errorf(tool.ShuttingDown, "the watch has ended: the daemon is stopping, or this end was too slow")
	}
	return err
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
	grants, err := s.options.Approvals.Granted()
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
