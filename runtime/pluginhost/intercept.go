package pluginhost

import (
	"context"
	"encoding/json"
	"errors"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// hooks is the capability of a plugin that decides on calls.
const hooks = "hooks"

// IsHook reports whether the plugin, as far as it is known, declares that it decides on calls.
func (p *Provider) IsHook() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known != nil && capable(p.known.describe, hooks)
}

// Intercept asks the plugin for its decision on a call. payload is the JSON object that a hook script reads, the answer the
// one that it writes. The caller bounds ctx.
func (p *Provider) Intercept(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	i, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !capable(i.describe, hooks) {
		return nil, tool.Errorf(tool.Unsupported, "plugin %q does not declare the capability %q", p.opts.Name, hooks)
	}
	answer, err := i.PluginClient.Intercept(ctx, &pb.InterceptRequest{Payload: payload})
	if err != nil {
		err = rpcError("Intercept", err)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			i.doubt()
			return nil, tool.AsError(err)
		}
		return nil, tool.Errorf(tool.HookFailed, "plugin %q did not decide: %w", p.opts.Name, err)
	}
	p.supervisor.Succeeded()
	if !isObject(answer.GetDecision()) {
		return nil, badAnswer("plugin %q decided with something that is not a JSON object", p.opts.Name)
	}
	return answer.GetDecision(), nil
}
