package disclosure

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The tiers: how much of the deferred tools an agent sees.
const (
	TierAll     = 0 // nothing is deferred: every tool stands in the list
	TierNames   = 1 // every deferred tool is named
	TierSources = 2 // some sources are only counted
)

// charsPerToken is the tokenizer-free estimate that everyone in this field uses.
const charsPerToken = 4

// Tokens estimates how many tokens a text takes.
func Tokens(text string) int { return catalog.TokensOf(utf8.RuneCountInString(text)) }

// Assembly is what one agent sees of one generation. It is immutable.
type Assembly struct {
	Tier int
	// View is what the agent may use, and Searchable the part of it that a search ranks: what may be deferred.
	View, Searchable *catalog.View
	// Tools are the definitions in the agent's list: the eager ones by name, then the bridge tools.
	Tools []Tool
	// Listing is what the bridge's text says about the deferred tools; it is part of the search tool's description.
	Listing string
	// Settings are the agent's, with every default filled in.
	Settings Settings
	Stats    Stats
	// Digest identifies the bytes of Tools: equal digests, equal lists.
	Digest string

	agent  *Agent
	defers bool
}

// Stats tells what deferring saves. Tokens are estimates, see [Tokens].
type Stats struct {
	Eager, Deferred int
	// AllTokens is what the definitions of all tools would take, ShownTokens what those in the list take, bridge included.
	AllTokens, ShownTokens int
}

// Tool is one definition in an agent's list.
type Tool struct {
	Name         tool.Name        `json:"name"`
	Title        string           `json:"title,omitempty"`
	Description  string           `json:"description,omitempty"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations  tool.Annotations `json:"annotations"`
	Icons        json.RawMessage  `json:"icons,omitempty"`
	Meta         json.RawMessage  `json:"_meta,omitempty"`
	Bridge       bool             `json:"-"` // it is one of the three bridge tools
}

func (t *Tool) tokens() int { return Tokens(t.Name + t.Description + string(t.InputSchema)) }

// Deferred reports whether a tool is kept out of the agent's list.
func (a *Assembly) Deferred(name tool.Name) bool {
	if !a.defers {
		return false
	}
	e, ok := a.View.Snapshot().Find(name)
	return ok && a.deferrable(e)
}

func (a *Assembly) deferrable(e *catalog.Entry) bool {
	return a.Settings.Defer.Deferred(e.Definition, e.Identity().Defer)
}

// Bridge tells which bridge tool a name means for this agent, if any. It answers below the threshold too, where the
// bridge is not listed.
func (a *Assembly) Bridge(name string) (kind catalog.BridgeKind, ok bool) {
	return a.Settings.Names.Kind(name)
}

// assemble makes what an agent sees of a snapshot.
func assemble(agent *Agent, s *catalog.Snapshot) *Assembly {
	a := &Assembly{agent: agent, Settings: agent.Settings.withDefaults()}
	a.View = s.View(agent.Scope)
	if a.Settings.Names != (Names{}).OrDefault() { // no provider has a reserved name, but one may have a new one
		a.View = a.View.Only(func(e *catalog.Entry) bool {
			_, hidden := a.Settings.Names.Kind(e.Definition.Name)
			return !hidden
		})
	}
	a.Searchable = a.View.Only(a.deferrable)

	var deferred, eager []*catalog.Entry
	cost := 0 // of the deferrable
	for _, e := range a.View.Listed() {
		a.Stats.AllTokens += e.Tokens()
		if a.deferrable(e) {
			deferred = append(deferred, e)
			cost += e.Tokens()
		} else {
			eager = append(eager, e)
		}
	}
	a.defers = len(deferred) > 0 && a.activated(cost)
	if !a.defers {
		eager, deferred = a.View.Listed(), nil
	}
	a.Stats.Eager, a.Stats.Deferred = len(eager), len(deferred)

	a.Tools = make([]Tool, 0, len(eager)+3)
	for _, e := range eager {
		a.Tools = append(a.Tools, a.eagerTool(e))
	}
	if a.defers || agent.Connectors {
		a.Listing, a.Tier = list(deferred, &a.Settings)
		a.Tools = append(a.Tools, bridgeTools(a)...)
	}
	a.finish()
	return a
}

func (a *Assembly) activated(cost int) bool {
	switch a.Settings.Enabled {
	case On:
		return true
	case Off:
		return false
	}
	return float64(cost) >= a.Settings.threshold()
}

func (a *Assembly) eagerTool(e *catalog.Entry) Tool {
	d := e.Definition
	t := Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: objectSchema(d.InputSchema),
		OutputSchema: outputSchema(d.OutputSchema), Annotations: d.Annotations, Icons: sound(d.Icons), Meta: sound(d.Meta),
	}
	if d.Coldness == tool.Core || a.Settings.Defer.Pinned(d) {
		t.Meta = alwaysLoad(t.Meta)
	}
	return t
}

func (a *Assembly) finish() {
	h := sha256.New()
	e := json.NewEncoder(h)
	for i := range a.Tools {
		t := &a.Tools[i]
		a.Stats.ShownTokens += t.tokens()
		if err := e.Encode(t); err != nil {
			panic("disclosure: a checked definition did not marshal: " + err.Error())
		}
	}
	a.Digest = hex.EncodeToString(h.Sum(nil)[:16])
}
