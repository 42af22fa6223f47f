package admin

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Audit is the record of all calls, each record as a JSON object. A page fits into one message.
type Audit interface {
	// Query returns a page, newest first, or oldest first where f.After is set.
	Query(ctx context.Context, f *AuditFilter) ([][]byte, error)
	// Tail hands over records as they are written, until ctx ends or fn fails.
	Tail(ctx context.Context, f *AuditFilter, fn func(page [][]byte) error) error
	// Export hands over everything that f chooses, oldest first.
	Export(ctx context.Context, f *AuditFilter, fn func(page [][]byte) error) error
	// Verify holds every record against the chain. The report is a JSON object.
	Verify(ctx context.Context) (report []byte, sound bool, err error)
}

// AuditFilter chooses records; what is zero chooses all.
type AuditFilter struct {
	Agent, Tool, Outcome, Kind, CallID string
	Since, Until                       time.Time
	After                              int64
	Limit                              int
}

var errNoAudit = tool.Errorf(tool.Unsupported, "this daemon keeps no audit")

func filterOf(f *adminpb.AuditFilter) *AuditFilter {
	out := &AuditFilter{
		Agent: f.GetAgent(), Tool: f.GetTool(), Outcome: f.GetOutcome(), Kind: f.GetKind(), CallID: f.GetCallId(),
		After: f.GetAfter(), Limit: int(f.GetLimit()),
	}
	if f.GetSince() != nil {
		out.Since = f.GetSince().AsTime()
	}
	if f.GetUntil() != nil {
		out.Until = f.GetUntil().AsTime()
	}
	return out
}

// QueryAudit implements hermes.admin.v1.
func (s *Server) QueryAudit(ctx context.Context, req *adminpb.AuditFilter) (*adminpb.AuditPage, error) {
	if s.options.Audit == nil {
		return nil, errNoAudit
	}
	page, err := s.options.Audit.Query(ctx, filterOf(req))
	if err != nil {
		return nil, tool.Errorf(tool.BadRequest, "%w", err)
	}
	return &adminpb.AuditPage{Entries: page}, nil
}

// TailAudit implements hermes.admin.v1.
func (s *Server) TailAudit(req *adminpb.AuditFilter, stream grpc.ServerStreamingServer[adminpb.AuditPage]) error {
	if s.options.Audit == nil {
		return errNoAudit
	}
	return s.options.Audit.Tail(stream.Context(), filterOf(req), sendPages(stream))
}

// ExportAudit implements hermes.admin.v1.
func (s *Server) ExportAudit(req *adminpb.AuditFilter, stream grpc.ServerStreamingServer[adminpb.AuditPage]) error {
	if s.options.Audit == nil {
		return errNoAudit
	}
	return s.options.Audit.Export(stream.Context(), filterOf(req), sendPages(stream))
}

func sendPages(stream grpc.ServerStreamingServer[adminpb.AuditPage]) func([][]byte) error {
	return func(page [][]byte) error { return stream.Send(&adminpb.AuditPage{Entries: page}) }
}

// VerifyAudit implements hermes.admin.v1.
func (s *Server) VerifyAudit(_ *adminpb.VerifyAuditRequest, stream grpc.ServerStreamingServer[adminpb.VerifyAuditResponse]) error {
	if s.options.Audit == nil {
		return errNoAudit
	}
	report, sound, err := s.options.Audit.Verify(stream.Context())
	if err != nil {
		return err
	}
	return stream.Send(&adminpb.VerifyAuditResponse{Report: report, Sound: sound})
}
