package pluginhost

import (
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Verdicts is of how many tools it is remembered whether they are available.
func (p *Provider) Verdicts() int {
	p.verdicts.mu.Lock()
	defer p.verdicts.mu.Unlock()
	return len(p.verdicts.tool)
}

// DelegationsUnderTest are delegations without a plugin.
type DelegationsUnderTest struct{ held delegations }

// Most is how many there can be.
func (d *DelegationsUnderTest) Most() int { return maxDelegations }

// Issue issues one for an agent.
func (d *DelegationsUnderTest) Issue(agent string) error {
	host := &provider.Host{OnDelegate: func(tool.Name) *provider.Delegate { return &provider.Delegate{} }}
	_, _, err := d.held.issue(&provider.Request{Call: &tool.Call{Agent: agent}, Definition: &tool.Definition{Name: "issuer"}, Host: host}, "other")
	return err
}
