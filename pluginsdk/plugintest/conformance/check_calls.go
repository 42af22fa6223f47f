package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
)

const (
	// smallMessages is the smallest message limit that a host may ask for, in bytes.
	smallMessages = 64 << 10
	// callers is how many calls the concurrency check has under way at once.
	callers = 16
	// healthWithin is how soon health must be answered while calls run.
	healthWithin = time.Second
)

const noCalls = "no tool can be tried: give read-only tools examples, or name calls that may be made (--call TOOL=JSON)"

func checkConfigErrors(ctx context.Context, r *runner) {
	if len(r.describe.GetConfigSchema()) == 0 {
		r.skip("the plugin takes no configuration")
		return
	}
	compiled, err := compileObject(r.describe.GetConfigSchema())
	if err != nil {
		return // told by describe
	}
	base := r.opts.Config
	if base == nil || fits(compiled, base) != nil {
		base = json.RawMessage("{}")
	}
	sound := fits(compiled, base) == nil
	for _, m := range misfits(compiled, r.describe.GetConfigSchema(), base) {
		s := r.open(ctx, nil)
		if s == nil {
			return
		}
		diags, err := s.Configure(ctx, m.raw, providerName, r.stateDir)
		r.finish(s)
		if err != nil {
			r.fault("Configure with %s failed as an RPC; answer a diagnostic: %v", short(m.raw), err)
			continue
		}
		refused, path := refusal(diags)
		switch {
		case !refused:
			r.fault("the configuration %s does not fit config_schema and is accepted", short(m.raw))
		case sound && m.property != "" && m.property != "plugintest_unknown" && !under(path, m.property):
			r.fault("the diagnostic for %s has the path %q; it must be /%s, so that the operator is shown the line", short(m.raw), path, m.property)
		}
	}
}

// refusal reports whether there is an error among the diagnostics, and the first path of one.
func refusal(diags []*pb.Diagnostic) (refused bool, path string) {
	for _, d := range diags {
		if d.GetSeverity() == pb.Diagnostic_SEVERITY_ERROR {
			if refused = true; path == "" {
				path = d.GetPath()
			}
		}
	}
	return refused, path
}

// under reports whether a JSON Pointer is at or below a property of the root.
func under(pointer, property string) bool {
	at := "/" + property
	return pointer == at || len(pointer) > len(at) && pointer[:len(at)+1] == at+"/"
}

func checkBadArguments(ctx context.Context, r *runner) {
	tried := 0
	for _, t := range r.tools {
		if t.input == nil {
			continue
		}
		var base []byte
		if e := t.GetExamples(); len(e) > 0 {
			base = e[0]
		}
		for _, m := range misfits(t.input, t.GetInputSchema(), base) {
			tried++
			o := r.invoke(ctx, r.main, Call{t.GetName(), m.raw}, nil)
			switch {
			case o == nil:
			case o.Err == nil:
				r.fault("%s ran with %s, which does not fit its schema", t.GetName(), short(m.raw))
			case o.Err.GetCode() != "invalid_arguments" && o.Err.GetCode() != "not_available":
				r.fault("%s answers %s with the code %q; it must be invalid_arguments", t.GetName(), short(m.raw), o.Err.GetCode())
			}
		}
	}
	r.note("%d calls with wrong arguments", tried)
}

func checkUnknownTool(ctx context.Context, r *runner) {
	o := r.invoke(ctx, r.main, Call{"no_such_tool_anywhere", json.RawMessage("{}")}, nil)
	if o != nil && o.Err == nil {
		r.fault("a tool that is not listed gives a result; it must give the error unknown_tool")
	} else if o != nil && o.Err.GetCode() != "unknown_tool" {
		r.fault("a tool that is not listed gives the error %q; it must be unknown_tool", o.Err.GetCode())
	}
}

func checkResults(ctx context.Context, r *runner) {
	if len(r.calls) == 0 {
		r.skip(noCalls)
		return
	}
	for _, c := range r.calls {
		if o := r.invoke(ctx, r.main, c, nil); o != nil {
			r.judge(c, o)
		}
	}
	r.note("%d calls", len(r.calls))
}

// judge looks at the outcome of a call whose arguments are right. That the tool failed is no fault: what it needs may not
// be there.
func (r *runner) judge(c Call, o *wire.Outcome) {
	if e := o.Err; e != nil {
		switch {
		case e.GetCode() == "plugin_panic":
			r.fault("%s with %s panics: %s", c.Tool, short(c.Arguments), e.GetMessage())
		case e.GetCode() == "" || e.GetMessage() == "":
			r.fault("%s with %s fails with code %q and message %q; both must be set", c.Tool, short(c.Arguments), e.GetCode(), e.GetMessage())
		}
		return
	}
	for i, block := range o.Result.GetContent() {
		var b struct {
			Type string `json:"type"`
		}
		if !isObject(block) || json.Unmarshal(block, &b) != nil || b.Type == "" {
			r.fault("%s: content block %d is no JSON object with a type: %s", c.Tool, i, short(block))
		}
	}
	if s := o.Result.GetStructured(); len(s) > 0 && !json.Valid(s) {
		r.fault("%s: the structured result is no JSON", c.Tool)
		return
	}
	t := r.find(c.Tool)
	if t == nil || t.output == nil || o.Result.GetIsError() {
		return
	}
	if len(o.Result.GetStructured()) == 0 {
		r.fault("%s declares an output schema and gives no structured result", c.Tool)
	} else if err := fits(t.output, o.Result.GetStructured()); err != nil {
		r.fault("%s: the structured result does not fit the output schema: %v", c.Tool, err)
	}
}

func checkBigResults(ctx context.Context, r *runner) {
	if len(r.calls) == 0 {
		r.skip(noCalls)
		return
	}
	s := r.configured(ctx, &wire.OpenOptions{MaxMessageBytes: smallMessages})
	if s == nil {
		return
	}
	defer r.finish(s)
	chunked := 0
	for _, c := range r.calls {
		if len(c.Arguments) > smallMessages/2 {
			continue
		}
		o, err := s.Call(ctx, r.request(c, nil), answer)
		if status.Code(err) == codes.ResourceExhausted {
			r.fault("%s sends a message larger than the %d bytes that the host asked for in Configure; send the result in chunks: %v", c.Tool, smallMessages, err)
			continue
		}
		if err != nil {
			r.fault("%s with %s: %v", c.Tool, short(c.Arguments), err)
			continue
		}
		if o.Chunks > 0 {
			chunked++
		}
		if size(o.Result) < 2 {
			continue
		}
		o = r.invoke(ctx, s, c, func(req *pb.InvokeRequest) { req.MaxResultBytes = 1 })
		if o != nil && o.Err.GetCode() != "result_too_large" && size(o.Result) > 1 {
			r.fault("%s gives a result of %d bytes although the call's max_result_bytes is 1; it must give the error result_too_large", c.Tool, size(o.Result))
		}
	}
	if r.note("%d results came in pieces", chunked); chunked == 0 {
		r.note("no result was bigger than a message of %d bytes; name a call that gives one (--call TOOL=JSON)", smallMessages)
	}
}

func size(r *pb.Result) int {
	n := len(r.GetStructured()) + len(r.GetMeta())
	for _, c := range r.GetContent() {
		n += len(c)
	}
	return n
}

func checkConcurrent(ctx context.Context, r *runner) {
	if len(r.calls) == 0 {
		r.skip(noCalls)
		return
	}
	var calls []Call // of a tool that is not parallel-safe only one at a time
	for i := 0; len(calls) < callers && i < callers; i++ {
		c := r.calls[i%len(r.calls)]
		if i < len(r.calls) && !r.called(calls, c.Tool) || r.find(c.Tool).GetAnnotations().GetParallelSafe() {
			calls = append(calls, c)
		}
	}
	type answered struct {
		call    Call
		outcome *wire.Outcome
		err     error
	}
	results := make(chan answered, len(calls))
	var running sync.WaitGroup
	for _, c := range calls {
		req := r.request(c, nil)
		running.Go(func() {
			o, err := r.main.Call(ctx, req, answer)
			results <- answered{c, o, err}
		})
	}
	quick, cancel := context.WithTimeout(ctx, healthWithin)
	if _, err := r.main.Health(quick, &pb.HealthRequest{}); err != nil {
		r.fault("health is not answered within %v while calls run: %v", healthWithin, err)
	}
	cancel()
	running.Wait()
	close(results)
	for a := range results {
		if a.err != nil {
			r.fault("%s beside %d other calls: %v", a.call.Tool, len(calls)-1, a.err)
			continue
		}
		r.judge(a.call, a.outcome)
	}
	r.note("%d calls at once", len(calls))
}

func (r *runner) called(calls []Call, name string) bool {
	for _, c := range calls {
		if c.Tool == name {
			return true
		}
	}
	return false
}

func checkCancel(ctx context.Context, r *runner) {
	calls := r.opts.Slow
	if len(calls) == 0 {
		calls = r.calls
		r.note("no call that runs long is known, so that quick ones were cancelled; name one (--slow TOOL=JSON)")
	}
	if len(calls) == 0 {
		r.skip("no call that runs long is known: name one (--slow TOOL=JSON)")
		return
	}
	for _, c := range calls {
		if r.find(c.Tool) == nil {
			r.fault("the slow call names a tool %q that the plugin does not have", c.Tool)
			continue
		}
		r.cancel(ctx, c)
	}
}

// cancel starts a call, waits until the plugin has it, gives it up, and waits until it has ended.
func (r *runner) cancel(ctx context.Context, c Call) {
	calling, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	req := r.request(c, nil)
	go func() {
		_, err := r.main.Call(calling, req, answer)
		ended <- err
	}()
	begun := r.awaitRunning(ctx, ended)
	stop()
	if !begun {
		return // it was quicker than the cancellation
	}
	if err := <-ended; err != nil && status.Code(err) != codes.Canceled && !errors.Is(err, context.Canceled) {
		r.fault("%s: %v", c.Tool, err)
	}
	if err := r.main.Idle(ctx, r.opts.CancelWithin); err != nil {
		r.fault("%s with %s does not end within %v of its cancellation: %v; end it when the stream's context does", c.Tool, short(c.Arguments), r.opts.CancelWithin, err)
	}
}

// awaitRunning waits until health counts a running call, and reports false if the call ended before.
func (r *runner) awaitRunning(ctx context.Context, ended chan error) bool {
	for {
		select {
		case err := <-ended:
			if err != nil {
				r.fault("a call failed before it was cancelled: %v", err)
			}
			return false
		default:
		}
		h, err := r.main.Health(ctx, &pb.HealthRequest{})
		if err != nil {
			r.fault("Health: %v", err)
			return false
		}
		if h.GetRunningCalls() > 0 {
			return true
		}
	}
}
