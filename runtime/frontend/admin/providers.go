package admin

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
	"github.com/hermesd/hermesd/runtime/tool"
)

// logged is a provider whose words are kept.
type logged interface{ Log() *providerlog.Log }

// delegated is a provider that holds delegations of agents.
type delegated interface{ Revoke(ids ...string) int }

// find finds a provider by name.
func (s *Server) find(name string) (provider.Provider, error) {
	var names []string
	for _, p := range s.options.Daemon.Providers() {
		if p.Identity().Name == name {
			return p, nil
		}
		names = append(names, p.Identity().Name)
	}
	return nil, tool.Errorf(tool.BadRequest, "there is no provider %q; there is: %s", name, strings.Join(names, ", "))
}

// RestartProvider implements hermes.admin.v1.
func (s *Server) RestartProvider(_ context.Context, req *adminpb.RestartProviderRequest) (*adminpb.RestartProviderResponse, error) {
	p, err := s.find(req.GetName())
	if err != nil {
		return nil, err
	}
	r, ok := p.(provider.Restarter)
	if !ok {
		return nil, tool.Errorf(tool.BadRequest, "%q is nothing that can be started anew", req.GetName())
	}
	s.options.Logger.Info("an operator starts a provider anew", "provider", req.GetName())
	r.Restart()
	return &adminpb.RestartProviderResponse{}, nil
}

// RevokeDelegations implements hermes.admin.v1.
func (s *Server) RevokeDelegations(_ context.Context, req *adminpb.RevokeDelegationsRequest) (*adminpb.RevokeDelegationsResponse, error) {
	p, err := s.find(req.GetProvider())
	if err != nil {
		return nil, err
	}
	d, ok := p.(delegated)
	if !ok {
		return nil, tool.Errorf(tool.BadRequest, "%q is nothing that agents delegate to", req.GetProvider())
	}
	n := d.Revoke(req.GetIds()...)
	s.options.Logger.Info("an operator revoked delegations", "provider", req.GetProvider(), "delegations", n)
	return &adminpb.RevokeDelegationsResponse{Revoked: int32(n)}, nil
}

// ProviderLogs implements hermes.admin.v1.
func (s *Server) ProviderLogs(req *adminpb.ProviderLogsRequest, stream grpc.ServerStreamingServer[adminpb.LogLine]) error {
	p, err := s.find(req.GetName())
	if err != nil {
		return err
	}
	l, ok := p.(logged)
	if !ok {
		return tool.Errorf(tool.BadRequest, "nothing that %q says is kept", req.GetName())
	}
	log := l.Log()
	lines := log.Tail(int(req.GetLines()))
	at := log.Last()
	if len(lines) > 0 {
		at = lines[len(lines)-1].Number
	}
	for {
		for i := range lines {
			line := lineOf(&lines[i])
			if i == 0 && at < lines[0].Number {
				line.Missed = lines[0].Number - at - 1
			}
			if err := stream.Send(line); err != nil {
				return err
			}
		}
		if len(lines) > 0 {
			at = lines[len(lines)-1].Number
		}
		if !req.GetFollow() {
			return nil
		}
		var more <-chan struct{}
		if lines, more = log.After(at); len(lines) > 0 {
			continue
		}
		select {
		case <-more:
		case <-stream.Context().Done():
			if s.base.Err() != nil {
				return tool.Errorf(tool.ShuttingDown, "the daemon is stopping")
			}
			return stream.Context().Err()
		}
	}
}

func lineOf(l *providerlog.Line) *adminpb.LogLine {
	line := &adminpb.LogLine{Time: timestamp(l.Time), Level: strings.ToLower(l.Level.String()), From: l.From, Text: l.Text}
	for _, f := range l.Fields {
		line.Fields = append(line.Fields, &adminpb.LogField{Key: f.Key, Value: f.Value})
	}
	return line
}
