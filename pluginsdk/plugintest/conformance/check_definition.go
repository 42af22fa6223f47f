package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	vocabulary "github.com/hermesd/hermesd/runtime/tool"
)

// contract is the version of hermes.plugin that these checks are about.
const contract = 1

var capabilities = []string{"hooks", "ask_human", "call_tool", "sample", "store"}

func checkDescribe(ctx context.Context, r *runner) {
	var seen []*pb.DescribeResponse
	for range 2 { // instances
		s := r.open(ctx, nil)
		if s == nil {
			return
		}
		for range 2 {
			d, err := s.Describe(ctx, &pb.DescribeRequest{})
			if err != nil {
				r.fault("Describe before Configure: %v", err)
				r.finish(s)
				return
			}
			seen = append(seen, d)
		}
		r.finish(s)
	}
	r.describe = seen[0]
	r.report.Plugin, r.report.Version = r.describe.GetName(), r.describe.GetVersion()
	for _, d := range seen[1:] {
		if !proto.Equal(d, r.describe) {
			r.fault("two descriptions differ: it must not depend on time, chance or place")
			break
		}
	}
	d := r.describe
	if !vocabulary.ValidName(d.GetName()) {
		r.fault("name %q: it must have 1 to 64 characters of A-Z, a-z, 0-9, _ and -", d.GetName())
	}
	if d.GetVersion() == "" {
		r.fault("there is no version")
	}
	if d.GetContractMin() > contract || d.GetContractMax() < contract {
		r.fault("contract_min %d and contract_max %d: they must include %d", d.GetContractMin(), d.GetContractMax(), contract)
	}
	for _, c := range d.GetCapabilities() {
		if !slices.Contains(capabilities, c) {
			r.fault("capability %q: there are %s", c, strings.Join(capabilities, ", "))
		}
	}
	if len(d.GetConfigSchema()) > 0 {
		if _, err := compileObject(d.GetConfigSchema()); err != nil {
			r.fault("config_schema: %v", err)
		}
	}
}

func checkConfigure(ctx context.Context, r *runner) { r.main = r.configured(ctx, nil) }

func checkList(ctx context.Context, r *runner) {
	tools, hash, err := r.main.Tools(ctx)
	if err != nil {
		r.fault("ListTools: %v", err)
		return
	}
	r.report.Tools = len(tools)
	if len(tools) == 0 && !slices.Contains(r.describe.GetCapabilities(), "hooks") {
		r.fault("there are no tools, and it is no hook")
	}
	names := map[string]bool{}
	for _, d := range tools {
		switch name := d.GetName(); {
		case !vocabulary.ValidName(name):
			r.fault("tool %q: a name has 1 to 64 characters of A-Z, a-z, 0-9, _ and -", name)
		case names[name]:
			r.fault("two tools are named %q", name)
		case strings.TrimSpace(d.GetDescription()) == "":
			r.fault("tool %q has no description: agents choose tools by it", name)
		}
		names[d.GetName()] = true
		if c := d.GetColdness(); !slices.Contains([]string{"", "core", "cold", "external"}, c) {
			r.fault("tool %q: coldness %q must be core, cold or external", d.GetName(), c)
		}
		r.tools = append(r.tools, &tool{ToolDefinition: d})
	}
	if want := hashOf(tools); hash != "" && hash != want {
		r.fault("the hash is %s, by the rule in plugin.proto it must be %s", hash, want)
	}
	other := r.configured(ctx, nil)
	if other == nil {
		return
	}
	defer r.finish(other)
	again, _, err := other.Tools(ctx)
	if err != nil {
		r.fault("ListTools of a second instance: %v", err)
	} else if hashOf(again) != hashOf(tools) {
		r.fault("a second instance lists other tools, or the same in another order")
	}
}

// hashOf is the digest that plugin.proto describes.
func hashOf(tools []*pb.ToolDefinition) string {
	h := sha256.New()
	for _, d := range tools {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(d)
		if err != nil {
			return err.Error()
		}
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func checkSchemas(_ context.Context, r *runner) {
	for _, t := range r.tools {
		var err error
		if t.input, err = compileObject(t.GetInputSchema()); err != nil {
			r.fault("tool %q: input_schema: %v", t.GetName(), err)
		}
		if len(t.GetOutputSchema()) > 0 {
			if t.output, err = compile(t.GetOutputSchema()); err != nil {
				r.fault("tool %q: output_schema: %v", t.GetName(), err)
			}
		}
		if meta := t.GetMeta(); len(meta) > 0 && !isObject(meta) {
			r.fault("tool %q: meta is no JSON object", t.GetName())
		}
	}
}

// checkExamples also collects the calls that may be made.
func checkExamples(ctx context.Context, r *runner) {
	available, err := r.main.CheckAvailability(ctx, &pb.CheckAvailabilityRequest{})
	if err != nil {
		r.fault("CheckAvailability: %v", err)
		return
	}
	none := 0
	for _, t := range r.tools {
		if len(t.GetExamples()) == 0 {
			none++
		}
		for i, e := range t.GetExamples() {
			if t.input == nil {
				continue
			}
			if err := fits(t.input, e); err != nil {
				r.fault("tool %q: example %d (%s): %v", t.GetName(), i+1, short(e), err)
			} else if t.GetAnnotations().GetReadOnly() && available.GetTools()[t.GetName()].GetAvailable() && len(r.calls) < maxCalls {
				r.calls = append(r.calls, Call{t.GetName(), e})
			}
		}
	}
	for _, c := range r.opts.Calls {
		if r.find(c.Tool) == nil {
			r.fault("the call to be made names a tool %q that the plugin does not have", c.Tool)
			continue
		}
		r.calls = append(r.calls, c)
	}
	if none > 0 {
		r.note("%d tools have no examples: agents and these checks would make use of them", none)
	}
}

func checkRPCs(ctx context.Context, r *runner) {
	s := r.main
	answers, err := s.CheckAvailability(ctx, &pb.CheckAvailabilityRequest{})
	r.implemented("CheckAvailability", err)
	for _, t := range r.tools {
		a := answers.GetTools()[t.GetName()]
		switch {
		case a == nil:
			r.fault("CheckAvailability does not answer for %q", t.GetName())
		case !a.GetAvailable() && a.GetReason() == "":
			r.fault("CheckAvailability says that %q is not available and gives no reason", t.GetName())
		}
	}
	_, err = s.Health(ctx, &pb.HealthRequest{})
	r.implemented("Health", err)
	_, err = s.Answer(ctx, &pb.AnswerRequest{Id: "nobody-asked", Answer: &pb.AnswerRequest_Sample{Sample: []byte("{}")}})
	r.implemented("Answer", err)
	r.watch(ctx)
	if slices.Contains(r.describe.GetCapabilities(), "hooks") {
		r.intercept(ctx)
	}
}

// implemented notes a fault if an RPC failed.
func (r *runner) implemented(name string, err error) {
	switch {
	case status.Code(err) == codes.Unimplemented:
		r.fault("%s is not implemented: every RPC of the contract must be there", name)
	case err != nil:
		r.fault("%s: %v", name, err)
	}
}

// watchFor is how long a Watch stream is looked at.
const watchFor = 100 * time.Millisecond

// watch opens the stream for a moment: it must send its header at once, and stay open.
func (r *runner) watch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.CancelWithin)
	defer cancel()
	stream, err := r.main.Watch(ctx, &pb.WatchRequest{})
	if err == nil {
		_, err = stream.Header()
	}
	if ctx.Err() != nil {
		r.fault("Watch sends no header: send it at once, so that the host knows that it misses nothing from then on")
		return
	}
	if err != nil {
		r.implemented("Watch", err)
		return
	}
	over := time.AfterFunc(watchFor, cancel)
	defer over.Stop()
	for err == nil {
		_, err = stream.Recv()
	}
	switch {
	case ctx.Err() != nil: // it was open as long as it was looked at
	case errors.Is(err, io.EOF):
		r.fault("Watch ends by itself; keep it open until the host ends it")
	default:
		r.implemented("Watch", err)
	}
}

func (r *runner) intercept(ctx context.Context) {
	const event = `{"event":"pre_call","call_id":"check","tool_name":"no_such_tool","toolset":"","source":"plugin","args":{},` +
		`"agent":"check","session_id":"check","annotations":{},"cwd":"/"}`
	a, err := r.main.Intercept(ctx, &pb.InterceptRequest{Payload: []byte(event)})
	if err != nil {
		r.implemented("Intercept", err)
		return
	}
	var d struct {
		Action string `json:"action"`
	}
	if err := json.Unmarshal(a.GetDecision(), &d); err != nil {
		r.fault("Intercept: the decision %s is no JSON object: %v", short(a.GetDecision()), err)
	} else if !slices.Contains([]string{"allow", "block", "modify", "ask"}, d.Action) {
		r.fault("Intercept: the action %q must be allow, block, modify or ask", d.Action)
	}
}
