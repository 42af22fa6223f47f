package testbin

import (
	"encoding/json"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// Transcript is what a plugin and its host once said to each other: protobuf messages byte for byte.
type Transcript struct {
	SDK       string     `json:"sdk"` // of the plugin
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is one RPC. The host's answers to the plugin's host requests, which go by an RPC of their own, stand with the call
// that they belong to.
type Exchange struct {
	RPC       string   `json:"rpc"`
	Request   []byte   `json:"request"`
	Responses [][]byte `json:"responses"`
	Answers   [][]byte `json:"answers,omitempty"`
}

// ReadTranscript reads a kept transcript.
func ReadTranscript(path string) (*Transcript, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &Transcript{}
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Messages makes an empty request and an empty response of an RPC.
func Messages(rpc string) (request, response proto.Message) {
	switch rpc {
	case "Describe":
		return &pb.DescribeRequest{}, &pb.DescribeResponse{}
	case "Configure":
		return &pb.ConfigureRequest{}, &pb.ConfigureResponse{}
	case "ListTools":
		return &pb.ListToolsRequest{}, &pb.ListToolsResponse{}
	case "CheckAvailability":
		return &pb.CheckAvailabilityRequest{}, &pb.CheckAvailabilityResponse{}
	case "Intercept":
		return &pb.InterceptRequest{}, &pb.InterceptResponse{}
	case "Invoke":
		return &pb.InvokeRequest{}, &pb.InvokeResponse{}
	}
	panic("testbin: no transcript has the RPC " + rpc)
}
