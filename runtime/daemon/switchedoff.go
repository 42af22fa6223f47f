package daemon

import (
	"context"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// switchedOff stands for a provider that the operator has disabled, so that nobody wonders where it is. Nothing of its block
// is looked at, since a block may be disabled because it does not work; so its tools are not known.
type switchedOff struct {
	identity provider.Identity
	offer    provider.Offer
}

func newSwitchedOff(source tool.Source, name string) provider.Runner {
	return &switchedOff{
		identity: provider.Identity{Name: name, Source: source},
		offer:    provider.Offer{Status: provider.Status{State: provider.Disabled, Reason: "switched off in the configuration: enabled = false", Since: time.Now()}},
	}
}

// Identity implements [provider.Provider].
func (s *switchedOff) Identity() provider.Identity { return s.identity }

// Offer implements [provider.Provider].
func (s *switchedOff) Offer() *provider.Offer { return &s.offer }

// Invoke implements [provider.Provider].
func (s *switchedOff) Invoke(context.Context, *provider.Request) (*tool.Result, error) {
	return nil, tool.Errorf(tool.ProviderDown, "provider %q is switched off by the operator; do not retry", s.identity.Name)
}

// Run implements [provider.Runner].
func (s *switchedOff) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
