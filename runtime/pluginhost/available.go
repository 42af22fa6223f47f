package pluginhost

import (
	"context"
	"maps"
	"sync"
	"time"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// checkLife is how long the answer of a check counts.
	checkLife = 30 * time.Second
	// flakeGrace is how long after its last success a failing check is taken for a flake: checks that ask a remote
	// service fail now and then, and tools must not come and go with them.
	flakeGrace = 60 * time.Second
	// checkTimeout bounds one check, startCheckTimeout that of all tools during a start, which a call may wait for.
	checkTimeout      = 5 * time.Second
	startCheckTimeout = time.Second
)

// verdicts are the answers of availability checks, by the own names of tools that the plugin lists.
type verdicts struct {
	mu   sync.Mutex
	tool map[string]*verdict
}

type verdict struct {
	reason string    // why not; "" if available
	asked  time.Time // when the answer was taken; zero: it does not count for the next question
	good   time.Time // when the last success was
}

func (v *verdicts) of(own string) *verdict {
	if v.tool == nil {
		v.tool = map[string]*verdict{}
	}
	if v.tool[own] == nil {
		v.tool[own] = &verdict{}
	}
	return v.tool[own]
}

// fresh returns the last answer, if it still counts.
func (v *verdicts) fresh(own string) (reason string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.tool[own]
	if x == nil {
		return "", false
	}
	return x.reason, !x.asked.IsZero() && time.Since(x.asked) < checkLife
}

// note takes an answer and returns what counts: a failure soon after a success is a flake and counts as a success, but is
// asked again.
func (v *verdicts) note(own, reason string) (counts string, flake bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x, now := v.of(own), time.Now()
	switch {
	case reason == "":
		*x = verdict{asked: now, good: now}
	case !x.good.IsZero() && now.Sub(x.good) < flakeGrace:
		x.asked = time.Time{}
		return "", true
	default:
		x.reason, x.asked = reason, now
	}
	return x.reason, false
}

// announce takes an answer that the plugin gave on its own account, which is no flake.
func (v *verdicts) announce(own, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x, now := v.of(own), time.Now()
	if x.reason, x.asked = reason, now; reason == "" {
		x.good = now
	}
}

func (v *verdicts) reason(own string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.tool[own]; x != nil {
		return x.reason
	}
	return ""
}

// unmet returns the reasons of all tools that are not available.
func (v *verdicts) unmet() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := map[string]string{}
	for own, x := range v.tool {
		if x.reason != "" {
			m[own] = x.reason
		}
	}
	return m
}

// keep forgets tools that are not listed any more.
func (v *verdicts) keep(list []*pb.ToolDefinition) {
	listed := map[string]bool{}
	for _, d := range list {
		listed[d.GetName()] = true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.tool, func(own string, _ *verdict) bool { return !listed[own] })
}

// Check implements provider.Checker. It starts the process only for a tool that was not available when last asked: for any
// other, the call is about to start it anyway.
func (p *Provider) Check(ctx context.Context, name tool.Name) error {
	def := p.find(name)
	if def == nil {
		return nil // the call itself will say so
	}
	if reason := p.missingEnv(def); reason != "" {
		return tool.Errorf(tool.NotAvailable, "%s", reason)
	}
	reason, fresh := p.verdicts.fresh(def.OwnName)
	if !fresh && (reason != "" || p.supervisor.Status().State == provider.Ready) {
		var err error
		if reason, err = p.ask(ctx, def.OwnName); err != nil {
			return err
		}
	}
	if reason != "" {
		return tool.Errorf(tool.NotAvailable, "%s", reason)
	}
	return nil
}

// ask asks the process about one tool and returns what counts.
func (p *Provider) ask(ctx context.Context, own string) (reason string, err error) {
	i, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	before := p.verdicts.reason(own)
	answers, err := i.check(ctx, own)
	if ctx.Err() != nil {
		return "", tool.AsError(ctx.Err())
	}
	if err != nil {
		reason = "its availability check failed: " + err.Error()
	} else {
		reason = answers[own]
	}
	counts, flake := p.verdicts.note(own, reason)
	if flake {
		p.opts.Logger.Warn("availability check failed soon after a success; the tool stays available", "tool", own, "reason", reason)
	}
	if counts != before {
		p.publish()
	}
	return counts, nil
}

// check asks about the tools named, or all, and returns the reasons of those that are not available.
func (i *instance) check(ctx context.Context, tools ...string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	answer, err := i.CheckAvailability(ctx, &pb.CheckAvailabilityRequest{Tools: tools})
	if err != nil {
		return nil, rpcError("CheckAvailability", err)
	}
	reasons := map[string]string{}
	for own, a := range answer.GetTools() {
		if a.GetAvailable() {
			continue
		}
		reasons[own] = oneLine(cut(a.GetReason()))
		if reasons[own] == "" {
			reasons[own] = "the plugin says that it is not available and gives no reason"
		}
	}
	return reasons, nil
}

// checkAll asks about every tool, after a start and after a new list.
func (p *Provider) checkAll(ctx context.Context, i *instance) {
	list := p.listed()
	p.verdicts.keep(list)
	answers, err := i.check(ctx)
	if err != nil {
		p.opts.Logger.Warn("plugin did not say which tools are available; all count as such until they are called", "error", err)
		return
	}
	for _, d := range list {
		p.verdicts.announce(d.GetName(), answers[d.GetName()])
	}
	p.publish()
}

// listed are the definitions that the plugin lists now.
func (p *Provider) listed() []*pb.ToolDefinition {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.tools
}

// named are those of the names that are of listed tools, each once: a plugin may name whatever it likes, as often as it likes.
func (p *Provider) named(names []string) []string {
	named := make(map[string]bool, len(names))
	for _, name := range names {
		named[name] = true
	}
	var own []string
	for _, d := range p.listed() {
		if named[d.GetName()] {
			own = append(own, d.GetName())
			delete(named, d.GetName())
		}
	}
	return own
}

// recheck asks again about the tools named, or all, because the plugin said that their availability changed.
func (p *Provider) recheck(ctx context.Context, i *instance, tools []string) {
	if len(tools) == 0 {
		p.checkAll(ctx, i)
		return
	}
	if tools = p.named(tools); len(tools) == 0 {
		return
	}
	answers, err := i.check(ctx, tools...)
	if err != nil {
		p.opts.Logger.Warn("plugin did not say which tools are available", "error", err)
		return
	}
	for _, own := range tools {
		p.verdicts.announce(own, answers[own])
	}
	p.publish()
}
