package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	vocabulary "github.com/hermesd/hermesd/runtime/tool"
)

const (
	// lifelineWithin is how soon a plugin must have ended when its host has died. The contract says one second; the rest is
	// for a loaded machine.
	lifelineWithin = 3 * time.Second
	// endWithin is how soon it must have ended after SIGTERM.
	endWithin = 5 * time.Second
	// leakCalls is how many calls the leak check makes between its two looks, and leakSlack how many more descriptors it
	// may find: pools grow a little.
	leakCalls = 100
	leakSlack = 10
	// oddLength is how long the longest odd text is that the panic check sends, in bytes.
	oddLength = 100_000
)

// checkPanic makes the calls that are said to panic, and sends odd but fitting texts to the read-only tools.
func checkPanic(ctx context.Context, r *runner) {
	for _, c := range r.opts.Panics {
		if o := r.invoke(ctx, r.main, c, nil); o != nil && o.Err.GetCode() != "plugin_panic" {
			r.fault("%s with %s should panic and ends with the code %q; it must be plugin_panic", c.Tool, short(c.Arguments), o.Err.GetCode())
		}
	}
	odd := 0
	for _, t := range r.tools {
		if t.input == nil || !t.GetAnnotations().GetReadOnly() {
			continue
		}
		for _, args := range oddities(t) {
			odd++
			if o := r.invoke(ctx, r.main, Call{t.GetName(), args}, nil); o != nil && o.Err.GetCode() == "plugin_panic" {
				r.fault("%s panics with %s: %s", t.GetName(), short(args), o.Err.GetMessage())
			}
		}
	}
	if _, err := r.main.Health(ctx, &pb.HealthRequest{}); err != nil {
		r.fault("the plugin does not answer any more: %v", err)
	}
	if len(r.opts.Panics)+odd == 0 {
		r.skip("no call is known that panics, and no read-only tool has an example to vary; name one (--panic TOOL=JSON)")
		return
	}
	r.note("%d calls that panic, %d with odd arguments", len(r.opts.Panics), odd)
}

// oddities are a tool's examples with texts that fit the schema and that nobody thought of.
func oddities(t *tool) []json.RawMessage {
	var list []json.RawMessage
	for _, example := range t.GetExamples() {
		var object map[string]any
		if json.Unmarshal(example, &object) != nil {
			continue
		}
		for name, value := range object {
			if _, ok := value.(string); !ok {
				continue
			}
			for _, text := range []string{"", "\x00", "🜚\u202e", "../../etc/passwd", "%s%n{{.}}${x}", strings.Repeat("a", oddLength)} {
				object[name] = text
				if raw, err := json.Marshal(object); err == nil && fits(t.input, raw) == nil {
					list = append(list, raw)
				}
			}
			object[name] = value
		}
	}
	return list
}

func checkDrain(ctx context.Context, r *runner) {
	s := r.configured(ctx, nil)
	if s == nil {
		return
	}
	defer r.finish(s)
	if _, err := s.Drain(ctx, &pb.DrainRequest{}); err != nil {
		r.implemented("Drain", err)
		return
	}
	if h, err := s.Health(ctx, &pb.HealthRequest{}); err != nil || !h.GetDraining() {
		r.fault("health does not say that it is draining after Drain (%v)", err)
	}
	name := "no_such_tool_anywhere"
	if len(r.tools) > 0 {
		name = r.tools[0].GetName()
	}
	if o := r.invoke(ctx, s, Call{name, json.RawMessage("{}")}, nil); o != nil && o.Err.GetCode() != "not_sent" {
		r.fault("a call after Drain ends with the code %q; it must be not_sent", o.Err.GetCode())
	}
}

func checkStdout(_ context.Context, r *runner) {
	if r.main.Process == nil {
		r.skip("the plugin runs in this process; check its program, too")
		return
	}
	if text := r.main.Process.Printed(); text != "" {
		r.fault("it prints on stdout after the handshake: %q; print on stderr", short(json.RawMessage(text)))
	}
}

func checkLeaks(ctx context.Context, r *runner) {
	s := r.configured(ctx, nil)
	if s == nil {
		return
	}
	calls := r.calls
	if len(calls) == 0 && len(r.tools) > 0 {
		calls = []Call{{r.tools[0].GetName(), json.RawMessage("[]")}} // refused, but a call
	}
	round := func(n int) {
		for i := range n {
			if len(calls) > 0 && ctx.Err() == nil {
				r.invoke(ctx, s, calls[i%len(calls)], nil)
			}
		}
	}
	round(len(calls)) // what is made once and kept is no leak
	before := descriptors(s)
	round(leakCalls)
	if after := descriptors(s); after > before+leakSlack {
		r.fault("the process has %d open descriptors, and had %d before %d calls", after, before, leakCalls)
	}
	if err := s.Idle(ctx, r.opts.CancelWithin); err != nil {
		r.fault("after all calls have ended: %v", err)
	}
	if s.Process == nil {
		r.finish(s)
		stacks, err := s.Leaked(r.opts.CancelWithin)
		if err != nil {
			r.fault("%v", err)
		} else if stacks != "" {
			r.fault("goroutines are left after the plugin's end:\n%s", stacks)
		}
		return
	}
	if err := s.Process.Terminate(endWithin); err != nil {
		r.fault("it does not end within %v of SIGTERM: %v", endWithin, err)
	} else if s.Process.Stragglers() {
		r.fault("it leaves processes behind that it started; end them with the plugin")
	}
	r.finish(s)
}

// descriptors counts the open ones of a plugin's process, 0 where that cannot be seen.
func descriptors(s *wire.Session) int {
	if s.Process == nil {
		return 0
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Process.PID()))
	if err != nil {
		return 0
	}
	return len(entries)
}

func checkLifeline(ctx context.Context, r *runner) {
	if r.main.Process == nil {
		r.skip("the plugin runs in this process; check its program, too")
		return
	}
	s := r.configured(ctx, nil)
	if s == nil {
		return
	}
	defer r.finish(s)
	if err := s.Process.CutLifeline(); err != nil {
		r.fault("%v", err)
		return
	}
	if err := s.Process.Wait(lifelineWithin); err != nil {
		r.fault("%v of the end of the descriptor that HERMESD_LIFELINE_FD names; read it, and exit at its end", err)
	}
}

// checkHosted starts the plugin as the daemon does, with certificates where the options do not forbid them.
func checkHosted(ctx context.Context, r *runner) {
	if r.opts.Hosted == nil {
		r.skip("not asked for")
		return
	}
	opts := *r.opts.Hosted
	opts.Name = cmp.Or(opts.Name, providerName)
	opts.Config, opts.StateDir = r.opts.Config, filepath.Join(r.stateDir, "hosted")
	changed := make(chan struct{}, 1)
	opts.OnChange = func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	p, err := pluginhost.New(&opts)
	if err != nil {
		r.fault("%v", err)
		return
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			r.fault("%v", err)
		}
	}()
	offer := p.Offer()
	for !settled(offer) {
		select {
		case <-changed:
		case <-ctx.Done():
			r.fault("it does not become ready; it is %s: %s", offer.Status.State, offer.Status.Reason)
			return
		}
		offer = p.Offer()
	}
	if offer.Status.State != provider.Ready {
		r.fault("it is %s: %s", offer.Status.State, offer.Status.Reason)
	}
	for name, reason := range offer.Refused {
		r.fault("the tool %q is refused: %s", name, reason)
	}
	if len(r.calls) > 0 && len(r.now.Faults) == 0 {
		r.callHosted(ctx, p, r.calls[0])
	}
	r.note("%d tools are offered, %d of them with a precondition that does not hold", len(offer.Tools), len(offer.Unmet))
}

// settled reports whether a start has come to its end, one way or the other.
func settled(o *provider.Offer) bool {
	switch o.Status.State {
	case provider.Ready, provider.Quarantined, provider.Backoff, provider.Stopped:
		return true
	}
	return false
}

func (r *runner) callHosted(ctx context.Context, p *pluginhost.Provider, c Call) {
	for _, d := range p.Offer().Tools {
		if d.OwnName != c.Tool {
			continue
		}
		_, err := p.Invoke(ctx, &provider.Request{Definition: &d, Call: &vocabulary.Call{
			ID: "check-hosted", Agent: "check", Session: "check", Tool: d.Name, Arguments: c.Arguments,
		}})
		switch vocabulary.CodeOf(err) {
		case vocabulary.BadAnswer, vocabulary.OutcomeUnknown, vocabulary.NotSent, vocabulary.Internal, vocabulary.ProviderDown:
			r.fault("%s with %s under the host: %v", c.Tool, short(c.Arguments), err)
		}
		return
	}
}
