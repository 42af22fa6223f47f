package pluginsdk_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

func TestADelegationNamesItsToolAndItsWord(t *testing.T) {
	c := inProcess(t, &pluginsdk.Plugin{Name: "p", Version: "1", Capabilities: []string{pluginsdk.CanCallTool}, Tools: []pluginsdk.Tool{
		pluginsdk.NewTool("keep", "", func(ctx context.Context, _ struct{}) (string, error) {
			first, d, err := pluginsdk.Delegate(ctx, "other", map[string]int{"n": 1})
			if err != nil {
				return "", err
			}
			second, err := d.Call(ctx, map[string]int{"n": 2})
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s %s %s", first.Content, d, second.Content), nil
		}, nil),
	}}, 0)
	configure(t, c, "")
	o := call(t, c, &pb.InvokeRequest{Tool: "keep"}, func(r *pb.HostRequest) *pb.AnswerRequest {
		ask, a := r.GetCallTool(), &pb.AnswerRequest{}
		if ask.GetDelegate() {
			a.Delegation = "word"
		}
		a.Answer = &pb.AnswerRequest_CallTool{CallTool: &pb.Result{Content: [][]byte{
			fmt.Appendf(nil, `{"tool":%q,"args":%s,"with":%q}`, ask.GetName(), ask.GetArguments(), r.GetDelegation()),
		}}}
		return a
	})
	want := `[{"tool":"other","args":{"n":1},"with":""}] {other word} [{"tool":"other","args":{"n":2},"with":"word"}]`
	if o.text() != want {
		t.Errorf("got  %s (%v)\nwant %s", o.text(), o.err, want)
	}
}
