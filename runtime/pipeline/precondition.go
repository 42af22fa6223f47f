package pipeline

import (
	"cmp"
	"context"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// precondition refuses a call that cannot work now. A provider that is about to be ready, also after it has stopped to start
// anew, is left to its own Invoke, which waits.
func (p *Pipeline) precondition(ctx context.Context, e *Entry) *tool.Error {
	name, offer := e.Call.Tool, e.Provider.Offer()
	if reason, refused := offer.Refused[name]; refused {
		return tool.Errorf(tool.ProviderQuarantined, "%s was not run: it is quarantined until the operator accepts it: %s", name, reason)
	}
	label := e.Definition.SourceName
	switch s := offer.Status; s.State {
	case provider.Quarantined:
		return tool.Errorf(tool.ProviderQuarantined, "%s was not run: its provider %q is quarantined until the operator accepts it: %s", name, label, s.Reason)
	case provider.Disabled, provider.Stopped:
		return tool.Errorf(tool.ProviderDown, "%s was not run: its provider %q is %s; do without it: %s", name, label, s.State,
			cmp.Or(s.Reason, "only the operator can start it again"))
	}
	if offer.Status.State == provider.Draining && e.Call.Depth > 0 {
		// It may be waited for by the very call that this one is nested in.
		return tool.Errorf(tool.ProviderStarting, "%s was not run: its provider %q is about to start anew, which a call within a call does not wait for; call it again in a moment", name, label)
	}
	reason, unmet := offer.Unmet[name]
	if !unmet {
		return nil
	}
	if _, can := e.Provider.(provider.Checker); can { // what the offer says may be some seconds old
		return checkAgain(ctx, e)
	}
	return unmetError(name, reason)
}

// checkAgain asks the provider itself whether the tool's precondition holds.
func checkAgain(ctx context.Context, e *Entry) *tool.Error {
	c, can := e.Provider.(provider.Checker)
	if !can {
		return nil
	}
	if err := c.Check(ctx, e.Call.Tool); err != nil {
		return unmetError(e.Call.Tool, err.Error())
	}
	return nil
}

func unmetError(name tool.Name, reason string) *tool.Error {
	return tool.Errorf(tool.NotAvailable, "%s was not run: it is not available here: %s", name, reason)
}
