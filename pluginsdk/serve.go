package pluginsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// Serve runs the plugin until its host ends it, and is the last thing that main does. Started by hand it answers help,
// describe, docs and invoke instead. A plugin that is not sound (a schema that does not compile, two tools of one name)
// is reported on stderr and the process exits with status 2.
func Serve(p *Plugin) {
	hosted := serve.Hosted()
	logger := plainLogger(os.Stderr)
	if hosted {
		logger = processLogger(os.Stderr)
	}
	s, err := newServer(p, logger)
	if err != nil {
		name := os.Args[0]
		if p != nil && p.Name != "" {
			name = p.Name
		}
		fmt.Fprintf(os.Stderr, "%s: the plugin cannot start: %v\n", name, err)
		os.Exit(2)
	}
	slog.SetDefault(logger)
	if hosted {
		serve.Process(s, logger)
		return
	}
	os.Exit(byHand(p, s, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// NewServer makes the plugin's implementation of hermes.plugin.v1 without a process around it, for tests and for hosts
// that keep a plugin in their own process. The error is what keeps [Serve] from starting.
func NewServer(p *Plugin) (pb.PluginServer, error) {
	return newServer(p, slog.Default())
}

func newServer(p *Plugin, logger *slog.Logger) (*serve.Server, error) {
	if p == nil {
		return nil, errors.New("there is no plugin")
	}
	static, err := p.check()
	if err != nil {
		return nil, err
	}
	w := &serve.Plugin{Describe: p.describe(), Configure: p.configure, Run: p.Run, Logger: logger}
	w.Tools = func(ctx context.Context) ([]*serve.Tool, error) {
		if p.ListTools == nil {
			return static, nil
		}
		more, err := p.ListTools(ctx)
		if err != nil {
			return nil, err
		}
		listed, err := p.serveTools(more)
		if err != nil {
			return nil, err
		}
		return slices.Concat(static, listed), nil
	}
	if p.Hook != nil {
		w.Intercept = p.intercept
	}
	return serve.New(w, serve.MessageLimit()), nil
}

// check finds everything that keeps the plugin from starting, and returns its fixed tools.
func (p *Plugin) check() ([]*serve.Tool, error) {
	var errs []error
	if !validName(p.Name) {
		errs = append(errs, fmt.Errorf("its name %q must have 1 to 64 characters of A-Z, a-z, 0-9, _ and -", p.Name))
	}
	if p.Version == "" {
		errs = append(errs, errors.New("it has no version"))
	}
	if len(p.Tools) == 0 && p.ListTools == nil && p.Hook == nil {
		errs = append(errs, errors.New("it has neither tools nor a hook"))
	}
	if p.Config != nil && p.Config.err != nil {
		errs = append(errs, p.Config.err)
	} else if p.Config != nil && p.Config.apply == nil {
		errs = append(errs, errors.New("its config was not made with NewConfig"))
	}
	for _, c := range p.Capabilities {
		if !slices.Contains([]string{CanAskHuman, CanCallTool, CanSample, CanStore, isHook}, c) {
			errs = append(errs, fmt.Errorf("there is no capability %q", c))
		}
	}
	static, err := p.serveTools(p.Tools)
	return static, errors.Join(append(errs, err)...)
}

func (p *Plugin) serveTools(tools []Tool) ([]*serve.Tool, error) {
	var (
		errs  []error
		out   = make([]*serve.Tool, 0, len(tools))
		names = make(map[string]bool, len(tools))
	)
	for _, t := range tools {
		if names[t.name] {
			errs = append(errs, fmt.Errorf("two tools are named %q", t.name))
			continue
		}
		names[t.name] = true
		st, err := t.serve(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, st)
	}
	return out, errors.Join(errs...)
}

func (p *Plugin) describe() *pb.DescribeResponse {
	d := &pb.DescribeResponse{
		Name: p.Name, Version: valid(p.Version), Description: valid(p.Description),
		Homepage: valid(p.Homepage), License: valid(p.License),
		ContractMin: 1, ContractMax: 1,
		Capabilities: slices.Clone(p.Capabilities),
		Build:        &pb.BuildInfo{Sdk: "hermesd-go/" + Version, Language: runtime.Version(), Revision: revision()},
	}
	if p.Hook != nil && !slices.Contains(d.Capabilities, isHook) {
		d.Capabilities = append(d.Capabilities, isHook)
	}
	if p.Config != nil {
		d.ConfigSchema = p.Config.schema.raw
	}
	return d
}

// revision is the commit that the binary was built from, "" if it does not say.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func (p *Plugin) intercept(ctx context.Context, payload []byte) ([]byte, error) {
	e := &HookEvent{Raw: json.RawMessage(payload)}
	if err := json.Unmarshal(payload, e); err != nil {
		return nil, fmt.Errorf("the event cannot be read: %w", err)
	}
	d, err := p.Hook(ctx, e)
	if err != nil {
		return nil, err
	}
	if d == nil {
		d = &Decision{Action: Allow}
	}
	if !slices.Contains([]string{Allow, Block, Modify, Ask}, d.Action) {
		return nil, fmt.Errorf("the hook decided %q, which is no action", d.Action)
	}
	return compact(d)
}
