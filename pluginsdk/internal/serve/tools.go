package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// pageBytes is about how much one message of ListTools holds. It is small against every sensible message limit.
const pageBytes = 256 << 10

// toolList is one immutable generation of the plugin's tools.
type toolList struct {
	generation uint64
	tools      []*Tool
	byName     map[string]*Tool
	hash       string
}

// list returns the tools, asking the plugin for them the first time.
func (s *Server) list(ctx context.Context) (*toolList, error) {
	s.mu.Lock()
	list := s.tools
	s.mu.Unlock()
	if list != nil {
		return list, nil
	}
	if err := s.reload(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, nil
}

// reload asks the plugin for its tools and publishes them.
func (s *Server) reload(ctx context.Context) error {
	var (
		tools []*Tool
		err   error
	)
	if p := contain(func() { tools, err = s.plugin.Tools(ctx) }); p != nil {
		err = p
	}
	if err != nil {
		return err
	}
	list := &toolList{tools: tools, byName: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		name := t.Definition.GetName()
		if list.byName[name] != nil {
			return fmt.Errorf("two tools are named %q", name)
		}
		list.byName[name] = t
	}
	if list.hash, err = Hash(tools); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools != nil {
		list.generation = s.tools.generation + 1
	}
	s.tools = list
	return nil
}

// Hash is the digest that ListTools ends with; plugin.proto says how it is made.
func Hash(tools []*Tool) (string, error) {
	h := sha256.New()
	deterministic := proto.MarshalOptions{Deterministic: true}
	for _, t := range tools {
		b, err := deterministic.Marshal(t.Definition)
		if err != nil {
			return "", fmt.Errorf("tool %q cannot be encoded: %w", t.Definition.GetName(), err)
		}
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(b)))
		h.Write(length[:])
		h.Write(b)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// ListTools implements the service.
func (s *Server) ListTools(_ *pb.ListToolsRequest, stream grpc.ServerStreamingServer[pb.ListToolsResponse]) error {
	list, err := s.list(s.with(stream.Context()))
	if err != nil {
		return status.Error(codes.Internal, clean(err.Error()))
	}
	page, size := &pb.ListToolsResponse{}, 0
	for _, t := range list.tools {
		n := proto.Size(t.Definition)
		if size > 0 && size+n > pageBytes {
			if err := stream.Send(page); err != nil {
				return err
			}
			page, size = &pb.ListToolsResponse{}, 0
		}
		page.Tools = append(page.Tools, t.Definition)
		size += n
	}
	page.Hash = list.hash
	if err := stream.Send(page); err != nil {
		return err
	}
	s.mu.Lock()
	s.listed = max(s.listed, list.generation)
	s.mu.Unlock()
	return nil
}

// ToolsChanged asks the plugin for its tools again and tells the host, unless they are what they were.
func (s *Server) ToolsChanged(ctx context.Context) error {
	s.mu.Lock()
	before := s.tools
	s.mu.Unlock()
	if err := s.reload(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before == nil || before.hash != s.tools.hash {
		s.publish(&pb.WatchResponse{Event: &pb.WatchResponse_ToolsChanged{ToolsChanged: &pb.ToolsChanged{}}})
	}
	return nil
}

// AvailabilityChanged tells the host to ask again about the tools named; none means all.
func (s *Server) AvailabilityChanged(tools []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(&pb.WatchResponse{Event: &pb.WatchResponse_AvailabilityChanged{
		AvailabilityChanged: &pb.AvailabilityChanged{Tools: tools},
	}})
}
