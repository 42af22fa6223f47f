package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"sync"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/tool"
)

// agents knows the configured principals and tells who a caller is.
type agents struct {
	names   []string // in the order of the configuration
	byName  map[string]*disclosure.Agent
	byToken map[[sha256.Size]byte]*bearer
	// heard is told each agent's token when it is first presented: before that the daemon knows its digest only. nil: nobody is.
	heard func(agent, token string)
	// local is the agent of a person's own programs; nil where there is none (a system service, or it is switched off).
	local *disclosure.Agent
	uid   int
	// toolsets resolves the operator's own names.
	toolsets *policy.Toolsets
}

// bearer is the agent that a token belongs to.
type bearer struct {
	agent *disclosure.Agent
	once  sync.Once // it was presented
}

func newAgents(cfg *config.Config, service bool) (*agents, error) {
	blocks := make(map[string][]string, len(cfg.Toolsets))
	for _, t := range cfg.Toolsets {
		blocks[t.Name] = t.Include
	}
	toolsets, err := policy.NewToolsets(blocks)
	if err != nil {
		return nil, err
	}
	a := &agents{byName: map[string]*disclosure.Agent{}, byToken: map[[sha256.Size]byte]*bearer{}, uid: os.Getuid(), toolsets: toolsets}
	implicit := !service
	for i := range cfg.Agents {
		block := &cfg.Agents[i]
		if block.Name == config.LocalAgent {
			implicit = false
		}
		if !block.Enabled {
			continue
		}
		var granted []string
		if block.Toolsets != nil {
			granted = append([]string{}, *block.Toolsets...)
		}
		agent := &disclosure.Agent{
			Name:     block.Name,
			Scope:    toolsets.Scope(granted, block.Exclude),
			Settings: settings(&block.ToolSearch, block.ContextLength, toolsets),
			Attended: block.Attended,
		}
		a.names = append(a.names, block.Name)
		a.byName[block.Name] = agent
		if block.TokenSHA256 == "" {
			continue
		}
		sum, err := hex.DecodeString(block.TokenSHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s: agent %q: token_sha256 is not a SHA-256 in hexadecimal", block.Pos, block.Name)
		}
		a.byToken[[sha256.Size]byte(sum)] = &bearer{agent: agent}
	}
	if implicit {
		a.names = append(a.names, config.LocalAgent)
		a.byName[config.LocalAgent] = &disclosure.Agent{Name: config.LocalAgent, Scope: toolsets.Scope(nil, nil), Settings: settings(&cfg.Tools.ToolSearch, 0, toolsets), Attended: true}
	}
	if !service {
		a.local = a.byName[config.LocalAgent]
	}
	return a, nil
}

func settings(s *config.ToolSearch, contextLength int, toolsets *policy.Toolsets) disclosure.Settings {
	return disclosure.Settings{
		Enabled: s.Enabled, ThresholdPct: &s.ThresholdPct,
		SearchDefaultLimit: s.SearchDefaultLimit, MaxSearchLimit: s.MaxSearchLimit,
		Listing: s.Listing, ListingPct: &s.ListingPct, ListingMaxTokens: s.ListingMaxTokens,
		ContextLength: contextLength, DirectCall: s.DirectCall,
		Defer: policy.Defer{List: s.Defer, Pin: s.Pin, Toolsets: toolsets},
		Names: catalog.BridgeNames{Search: s.Names[config.BridgeSearch], Describe: s.Names[config.BridgeDescribe], Call: s.Names[config.BridgeCall]},
	}
}

// ByToken finds the agent that a bearer token belongs to. Comparing digests leaks nothing about the token.
func (a *agents) ByToken(token string) (*disclosure.Agent, error) {
	if b, ok := a.byToken[sha256.Sum256([]byte(token))]; ok {
		b.once.Do(func() {
			if a.heard != nil {
				a.heard(b.agent.Name, token)
			}
		})
		return b.agent, nil
	}
	return nil, tool.Errorf(tool.Unauthenticated, "no agent has this token; make one with `hermesd agent token NAME`")
}

// Local is the implicit agent, for a connection that the same person's program made.
func (a *agents) Local(peerUID int, known bool) (*disclosure.Agent, error) {
	switch {
	case a.local == nil:
		return nil, tool.Errorf(tool.Unauthenticated, "a token is needed: send `Authorization: Bearer TOKEN`")
	case !known || peerUID != a.uid:
		return nil, tool.Errorf(tool.Unauthenticated, "a token is needed: only programs of the user who runs the daemon connect without one")
	}
	return a.local, nil
}

// ByName finds a configured agent.
func (a *agents) ByName(name string) (*disclosure.Agent, bool) {
	agent, ok := a.byName[name]
	return agent, ok
}
