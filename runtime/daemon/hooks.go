package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/hermesd/hermesd/hooks"
	"github.com/hermesd/hermesd/hooks/webhook"
	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// callHooks is the operator's code around calls. It implements the hooks of package pipeline.
type callHooks struct{ *hooks.Chain }

// newHooks makes the hooks of a configuration. Plugins that serve some are among the providers.
func newHooks(cfg *config.Config, toolsets *policy.Toolsets, providers []provider.Runner, logger *slog.Logger) (callHooks, error) {
	var list []hooks.Hook
	for i := range cfg.Hooks {
		block := &cfg.Hooks[i]
		if !block.Enabled {
			continue
		}
		runner, err := newHookRunner(block, providers)
		if err != nil {
			return callHooks{}, fmt.Errorf("%s: hook %q: %w", block.Pos, block.Name, err)
		}
		list = append(list, hooks.Hook{
			Name: block.Name, On: hooks.Event(block.On), Runner: runner, Timeout: block.Timeout, OnError: hooks.OnError(block.OnError),
			Matches: func(d *tool.Definition) bool {
				return slices.ContainsFunc(block.Match, func(pattern string) bool { return toolsets.Match(pattern, d) })
			},
		})
	}
	opts := &hooks.Options{Logger: logger}
	if dir, err := os.Getwd(); err == nil {
		opts.Dir = dir
	}
	chain, err := hooks.New(list, opts)
	return callHooks{chain}, err
}

func newHookRunner(block *config.Hook, providers []provider.Runner) (hooks.Runner, error) {
	switch {
	case block.Exec != nil:
		return hooks.NewExec(&hooks.Exec{Command: block.Exec})
	case block.Webhook != "":
		return hooks.NewWebhook(&webhook.Options{URL: block.Webhook, Secret: block.Secret})
	}
	for _, p := range providers {
		if plugin, ok := p.(hooks.Interceptor); ok && p.Identity().Name == block.Plugin {
			return hooks.NewPlugin(plugin)
		}
	}
	return nil, fmt.Errorf("the plugin %q is switched off; enable it, or the hook with enabled = false", block.Plugin)
}

func hooked(e *pipeline.Entry) *hooks.Call {
	return &hooks.Call{Call: e.Call, Definition: e.Definition}
}

// Before implements the hooks of package pipeline.
func (h callHooks) Before(ctx context.Context, e *pipeline.Entry) (pipeline.Verdict, *tool.Error) {
	v, err := h.Chain.Before(ctx, hooked(e))
	if err != nil {
		return pipeline.Verdict{}, err
	}
	return pipeline.Verdict{Action: verdicts[v.Action], Hook: v.Hook, Message: v.Message, RuleKey: v.RuleKey, Arguments: v.Args}, nil
}

var verdicts = map[hooks.Action]pipeline.Action{hooks.Allow: pipeline.Allow, hooks.Ask: pipeline.Ask, hooks.Block: pipeline.Deny}

// After implements the hooks of package pipeline.
func (h callHooks) After(ctx context.Context, e *pipeline.Entry, out *pipeline.Outcome) {
	after := h.Chain.After(ctx, hooked(e), hooks.Outcome{Result: out.Result, Err: out.Err, Duration: out.Duration})
	out.Result, out.Err = after.Result, after.Err
}

// providerWatch tells the hooks when a provider's state changes.
type providerWatch struct {
	hooks *hooks.Chain
	last  map[string]provider.State
}

// look compares every provider's state with the last one. One goroutine calls it.
func (w *providerWatch) look(providers []provider.Runner) {
	for _, p := range providers {
		id, status := p.Identity(), p.Offer().Status
		if before, known := w.last[id.Name]; known && before == status.State {
			continue
		}
		w.last[id.Name] = status.State
		w.hooks.ProviderChanged(&hooks.Provider{Name: id.Name, Source: id.Source, State: string(status.State), Reason: status.Reason})
	}
}
