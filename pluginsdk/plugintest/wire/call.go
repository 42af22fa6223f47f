package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// maxResult bounds what one call may send here, in bytes.
const maxResult = 256 << 20

// Outcome is everything that came back from one call.
type Outcome struct {
	Result   *pb.Result // with the parts that came in pieces put together; nil if the call ended with an error
	Err      *pb.Error  // nil if it ended with a result
	Progress []*pb.Progress
	Logs     []*pb.Log
	Requests []*pb.HostRequest
	Chunks   int // how many pieces came
}

// Answerer answers one host request; the answer's id is filled in for it.
type Answerer func(context.Context, *pb.HostRequest) *pb.AnswerRequest

// Call runs a tool and collects what it says until its end. Host requests are answered by answer, several at once; nil
// refuses them. An error means that the RPC failed or that the stream broke the contract, never that the tool failed.
func (s *Session) Call(ctx context.Context, req *pb.InvokeRequest, answer Answerer) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	stream, err := s.Invoke(ctx, req)
	if err != nil {
		return nil, err
	}
	o, parts := &Outcome{}, &parts{}
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if o.Result == nil && o.Err == nil {
				return nil, errors.New("the stream ended without a result or an error")
			}
			return o, nil
		}
		if err != nil {
			return nil, err
		}
		if o.Result != nil || o.Err != nil {
			return nil, fmt.Errorf("%T came after the call's end", event.GetEvent())
		}
		switch e := event.GetEvent().(type) {
		case *pb.InvokeResponse_Progress:
			o.Progress = append(o.Progress, e.Progress)
		case *pb.InvokeResponse_Log:
			o.Logs = append(o.Logs, e.Log)
		case *pb.InvokeResponse_Chunk:
			o.Chunks++
			if err := parts.add(e.Chunk); err != nil {
				return nil, err
			}
		case *pb.InvokeResponse_HostRequest:
			o.Requests = append(o.Requests, e.HostRequest)
			answering.Go(func() { s.answer(ctx, e.HostRequest, answer, cancel) })
		case *pb.InvokeResponse_Result:
			if o.Result, err = parts.join(e.Result); err != nil {
				return nil, err
			}
		case *pb.InvokeResponse_Error:
			o.Err = e.Error
		default:
			return nil, errors.New("an event of no known kind")
		}
	}
}

// answer answers one request. If the plugin does not take the answer its call could wait for ever, and is ended.
func (s *Session) answer(ctx context.Context, req *pb.HostRequest, answer Answerer, abort func()) {
	reply := &pb.AnswerRequest{Answer: &pb.AnswerRequest_Error{Error: &pb.Error{
		Code: "unsupported", Blame: "host", Message: "nobody answers host requests here",
	}}}
	if answer != nil {
		reply = answer(ctx, req)
	}
	reply.Id = req.GetId()
	if _, err := s.Answer(ctx, reply); err != nil {
		abort()
	}
}

// parts puts the pieces of a big result together.
type parts struct {
	content    [][]byte
	structured []byte
	open       []byte
	size       int
	part       pb.Chunk_Part
	begun      bool
}

func (p *parts) add(c *pb.Chunk) error {
	if p.begun && c.GetPart() != p.part {
		return errors.New("a piece of another part came before the last piece of the one before it")
	}
	if p.size += len(c.GetData()); p.size > maxResult {
		return fmt.Errorf("the result has more than %d bytes", maxResult)
	}
	p.part, p.begun = c.GetPart(), !c.GetLast()
	p.open = append(p.open, c.GetData()...)
	if !c.GetLast() {
		return nil
	}
	if c.GetPart() == pb.Chunk_PART_STRUCTURED {
		p.structured = p.open
	} else {
		p.content = append(p.content, p.open)
	}
	p.open = nil
	return nil
}

func (p *parts) join(r *pb.Result) (*pb.Result, error) {
	if p.begun {
		return nil, errors.New("the result came before the last piece of a part")
	}
	if p.structured != nil && len(r.GetStructured()) > 0 {
		return nil, errors.New("the structured result came twice: in pieces and whole")
	}
	joined := &pb.Result{Content: append(p.content, r.GetContent()...), Structured: r.GetStructured(), IsError: r.GetIsError(), Meta: r.GetMeta()}
	if p.structured != nil {
		joined.Structured = p.structured
	}
	return joined, nil
}
