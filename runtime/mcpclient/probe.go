package mcpclient

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Step is one step of coming to know a server.
type Step struct {
	Name string // "start" or "connect", "handshake", "tools/list", "resources and prompts"
	Took time.Duration
	Err  error // why it failed; nil if it did not
}

// Report is what a [Probe] found.
type Report struct {
	Steps []Step
	// Protocol is the version that was agreed on; ServerName and ServerVersion are what the server calls itself.
	Protocol, ServerName, ServerVersion string
	// Tools are those that would be offered, Refused the reasons why some of them would not. Remark is what the operator may
	// want to know of them, "" for nothing.
	Tools                         []tool.Definition
	Refused                       map[tool.Name]string
	Remark                        string
	Resources, Templates, Prompts int
}

// Err is why the probe failed; nil if it did not.
func (r *Report) Err() error {
	if len(r.Steps) == 0 {
		return errors.New("nothing was tried")
	}
	return r.Steps[len(r.Steps)-1].Err
}

// mask hides secrets in what the server said: it may repeat the token or the address that it was given.
func (r *Report) mask(mask func(string) string) {
	r.ServerName, r.ServerVersion = mask(r.ServerName), mask(r.ServerVersion)
	for i, s := range r.Steps {
		if s.Err == nil {
			continue
		}
		if masked := mask(s.Err.Error()); masked != s.Err.Error() {
			r.Steps[i].Err = errors.New(masked)
		}
	}
}

// Probe connects to a server, lists what it has, and stops it again. An error means that the options cannot work; what is
// wrong with the server stands in the report. Nothing is cached.
func Probe(ctx context.Context, opts *Options) (*Report, error) {
	o := *opts
	o.CacheDir, o.OnChange = "", nil
	p, err := New(&o)
	if err != nil {
		return nil, err
	}
	p.probe = true
	r := &Report{}
	defer func() { r.Steps = p.steps; r.mask(p.opts.Mask) }()
	ctx, cancel := context.WithTimeout(ctx, p.opts.ConnectTimeout)
	defer cancel()
	s, err := p.connect(ctx, p.opts.Sessions)
	if err != nil {
		p.blame(err)
		return r, nil
	}
	defer s.Stop(context.WithoutCancel(ctx))
	r.Protocol = s.line.protocol()
	if init := s.sdk.InitializeResult(); init != nil && init.ServerInfo != nil {
		r.ServerName, r.ServerVersion = init.ServerInfo.Name, init.ServerInfo.Version
	}
	listing := p.step("tools/list")
	tools, err := s.listTools(ctx)
	listing(err)
	if err != nil {
		p.blame(s.explain(p.late(ctx, err)))
		return r, nil
	}
	p.replace(tools)
	offer := p.offer.Load()
	r.Tools, r.Refused, r.Remark = offer.Tools, offer.Refused, offer.Status.Reason
	if p.opts.Resources || p.opts.Prompts {
		listing := p.step("resources and prompts")
		found, err := s.takeStock(ctx)
		listing(err)
		r.Resources, r.Templates, r.Prompts = len(found.Resources), len(found.Templates), len(found.Prompts)
	}
	return r, nil
}

// step begins a step, which ends with the function that it returns. Outside a probe nothing is noted.
func (p *Provider) step(name string) (ended func(error)) {
	begun := time.Now()
	return func(err error) {
		if p.probe {
			p.steps = append(p.steps, Step{name, time.Since(begun), err})
		}
	}
}

// blame gives the step that failed the reason as an operator reads it, beside the step's name.
func (p *Provider) blame(err error) {
	n := len(p.steps)
	if n == 0 {
		return
	}
	last := &p.steps[n-1]
	last.Err = err
	if rest, doubled := strings.CutPrefix(err.Error(), last.Name+": "); doubled {
		last.Err = errors.New(rest)
	}
}
