package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
)

const (
	// maxFaults bounds what is told of one check.
	maxFaults = 10
	// maxCalls bounds the calls that are made of a plugin's examples.
	maxCalls = 40
	// providerName is the label of the operator's block that the plugin sees.
	providerName = "check"
)

// runner is one run of the checks, with what the earlier ones found out.
type runner struct {
	target wire.Target
	opts   Options
	report Report
	now    Finding

	describe *pb.DescribeResponse
	main     *wire.Session // configured; the calls go to it
	tools    []*tool
	calls    []Call // that may be made
	stateDir string
	lastID   int
}

// tool is a listed tool with its compiled schemas, nil where they do not compile.
type tool struct {
	*pb.ToolDefinition
	input, output *jsonschema.Schema
}

func newRunner(target wire.Target, opts *Options) *runner {
	r := &runner{target: target}
	if opts != nil {
		r.opts = *opts
	}
	r.opts.CancelWithin = cmp.Or(r.opts.CancelWithin, 2*time.Second)
	r.opts.CheckTimeout = cmp.Or(r.opts.CheckTimeout, 30*time.Second)
	return r
}

func (r *runner) close() {
	if r.main != nil {
		r.finish(r.main)
	}
	if r.stateDir != "" {
		if err := os.RemoveAll(r.stateDir); err != nil {
			r.fault("the state folder cannot be removed: %v", err)
		}
	}
}

// fault notes that the running check failed.
func (r *runner) fault(format string, args ...any) {
	switch n := len(r.now.Faults); {
	case n < maxFaults:
		r.now.Faults = append(r.now.Faults, fmt.Sprintf(format, args...))
	case n == maxFaults:
		r.now.Faults = append(r.now.Faults, "and more of the kind")
	}
}

func (r *runner) skip(format string, args ...any) {
	r.now.Status, r.now.Note = Skip, fmt.Sprintf(format, args...)
}

func (r *runner) note(format string, args ...any) { r.now.Note = fmt.Sprintf(format, args...) }

// open makes an instance, and notes a fault if that fails.
func (r *runner) open(ctx context.Context, opts *wire.OpenOptions) *wire.Session {
	s, err := r.target.Open(ctx, opts)
	if err != nil {
		r.fault("it does not start: %v", err)
		return nil
	}
	return s
}

// configured makes an instance that has been configured as the calls need it.
func (r *runner) configured(ctx context.Context, opts *wire.OpenOptions) *wire.Session {
	s := r.open(ctx, opts)
	if s == nil {
		return nil
	}
	if !r.configure(ctx, s) {
		r.finish(s)
		return nil
	}
	return s
}

func (r *runner) configure(ctx context.Context, s *wire.Session) bool {
	if r.stateDir == "" {
		dir, err := os.MkdirTemp("", "hermesd-state-")
		if err != nil {
			r.fault("no state folder can be made: %v", err)
			return false
		}
		r.stateDir = dir
	}
	diags, err := s.Configure(ctx, r.opts.Config, providerName, r.stateDir)
	if err != nil {
		r.fault("Configure: %v", err)
		return false
	}
	ok := true
	for _, d := range diags {
		if d.GetSeverity() == pb.Diagnostic_SEVERITY_ERROR {
			r.fault("it refuses its configuration: %s: %s %s; give one that it accepts", cmp.Or(d.GetPath(), "/"), d.GetSummary(), d.GetDetail())
			ok = false
		}
	}
	return ok
}

func (r *runner) finish(s *wire.Session) {
	if err := s.Close(); err != nil {
		r.fault("it does not end: %v", err)
	}
}

// invoke makes a call and notes a fault if the stream breaks the contract; the outcome is nil then.
func (r *runner) invoke(ctx context.Context, s *wire.Session, c Call, change func(*pb.InvokeRequest)) *wire.Outcome {
	o, err := s.Call(ctx, r.request(c, change), answer)
	if err != nil {
		r.fault("%s with %s: %v", c.Tool, short(c.Arguments), err)
		return nil
	}
	return o
}

func (r *runner) request(c Call, change func(*pb.InvokeRequest)) *pb.InvokeRequest {
	r.lastID++
	req := &pb.InvokeRequest{
		CallId: fmt.Sprintf("check-%d", r.lastID), Tool: c.Tool, Arguments: c.Arguments, Agent: "check", Session: "check",
		Granted: r.describe.GetCapabilities(),
	}
	if change != nil {
		change(req)
	}
	return req
}

// answer is how the checks answer host requests: nobody is there to ask, and a key space is always empty.
func answer(_ context.Context, req *pb.HostRequest) *pb.AnswerRequest {
	switch req.GetRequest().(type) {
	case *pb.HostRequest_AskHuman:
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{AskHuman: &pb.AskHumanAnswer{Action: "decline"}}}
	case *pb.HostRequest_Store:
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Store{Store: &pb.StoreAnswer{}}}
	default:
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Error{Error: &pb.Error{
			Code: "unsupported", Blame: "host", Message: "the conformance checks cannot do this",
		}}}
	}
}

func (r *runner) find(name string) *tool {
	for _, t := range r.tools {
		if t.GetName() == name {
			return t
		}
	}
	return nil
}

// compile makes a validator of a JSON Schema, with draft 2020-12 where it names none. Nothing is fetched.
func compile(raw []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// fits validates a JSON text against a schema.
func fits(s *jsonschema.Schema, raw []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(value)
}

func short(raw json.RawMessage) string {
	const most = 120
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
