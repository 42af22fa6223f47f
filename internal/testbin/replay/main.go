// Replay is a plugin that says again, byte for byte, what a plugin of an earlier time said. Its argument is the transcript.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hermesd/hermesd/internal/testbin"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

func main() {
	t, err := testbin.ReadTranscript(os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: pb.ProtocolVersion, MagicCookieKey: pb.MagicCookieKey, MagicCookieValue: pb.MagicCookieValue,
		},
		Plugins:    plugin.PluginSet{pb.PluginName: glue{transcript: t}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server { return grpc.NewServer(opts...) },
		Logger:     hclog.NewNullLogger(),
	})
}

type glue struct {
	plugin.NetRPCUnsupportedPlugin
	transcript *testbin.Transcript
}

func (g glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterPluginServer(s, &service{transcript: g.transcript, answers: make(chan *pb.AnswerRequest, 16)})
	return nil
}

func (glue) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin is no client")
}

type service struct {
	pb.UnimplementedPluginServer
	transcript *testbin.Transcript
	answers    chan *pb.AnswerRequest
}

// kept fills in the kept response of an RPC that answers once.
func (s *service) kept(rpc string, into proto.Message) error {
	for _, e := range s.transcript.Exchanges {
		if e.RPC == rpc {
			return proto.Unmarshal(e.Responses[0], into)
		}
	}
	return status.Errorf(codes.Unimplemented, "the transcript has no %s", rpc)
}

func (s *service) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	r := &pb.DescribeResponse{}
	return r, s.kept("Describe", r)
}

func (s *service) Configure(context.Context, *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	r := &pb.ConfigureResponse{}
	return r, s.kept("Configure", r)
}

func (s *service) CheckAvailability(context.Context, *pb.CheckAvailabilityRequest) (*pb.CheckAvailabilityResponse, error) {
	r := &pb.CheckAvailabilityResponse{}
	return r, s.kept("CheckAvailability", r)
}

func (s *service) ListTools(_ *pb.ListToolsRequest, stream grpc.ServerStreamingServer[pb.ListToolsResponse]) error {
	for _, e := range s.transcript.Exchanges {
		if e.RPC != "ListTools" {
			continue
		}
		for _, raw := range e.Responses {
			page := &pb.ListToolsResponse{}
			if err := proto.Unmarshal(raw, page); err != nil {
				return err
			}
			if err := stream.Send(page); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *service) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Invoke finds the kept call of the same tool and arguments. After a host request it waits for the host's answer.
func (s *service) Invoke(req *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeResponse]) error {
	for _, e := range s.transcript.Exchanges {
		then := &pb.InvokeRequest{}
		if e.RPC != "Invoke" || proto.Unmarshal(e.Request, then) != nil || then.GetTool() != req.GetTool() || !bytes.Equal(then.GetArguments(), req.GetArguments()) {
			continue
		}
		for _, raw := range e.Responses {
			event := &pb.InvokeResponse{}
			if err := proto.Unmarshal(raw, event); err != nil {
				return err
			}
			if err := stream.Send(event); err != nil {
				return err
			}
			if event.GetHostRequest() == nil {
				continue
			}
			select {
			case <-s.answers:
			case <-stream.Context().Done():
				return nil
			}
		}
		return nil
	}
	return status.Errorf(codes.NotFound, "the transcript has no call of %s with %s", req.GetTool(), req.GetArguments())
}

func (s *service) Answer(_ context.Context, req *pb.AnswerRequest) (*pb.AnswerResponse, error) {
	s.answers <- req
	return &pb.AnswerResponse{}, nil
}

func (s *service) Drain(context.Context, *pb.DrainRequest) (*pb.DrainResponse, error) {
	return &pb.DrainResponse{}, nil
}

func (s *service) Health(context.Context, *pb.HealthRequest) (*pb.HealthResponse, error) {
	return &pb.HealthResponse{}, nil
}
