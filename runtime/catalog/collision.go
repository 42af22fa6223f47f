package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Origin says whose tool something is.
type Origin struct {
	Source   tool.Source
	Provider string // the block's label
	OwnName  string // what the provider calls the tool
}

func (o Origin) String() string { return fmt.Sprintf("%s %q (%s)", o.Source, o.Provider, o.OwnName) }

// Collision is a name that several tools claim.
type Collision struct {
	Name    tool.Name
	Refused []Origin // in the order of the configuration
	Kept    *Origin  // the one that has the name; nil when nobody has
}

// Help says what an operator can do about it.
func (x Collision) Help() string {
	if x.Kept != nil {
		return "a built-in keeps its name: write override = true in one provider's block to let it shadow the built-in, or prefix = true to rename its tools"
	}
	return "write prefix = true in the block of one of them, or exclude the tool there"
}

func (x Collision) equal(y Collision) bool {
	return x.Name == y.Name && slices.Equal(x.Refused, y.Refused) &&
		(x.Kept == nil) == (y.Kept == nil) && (x.Kept == nil || *x.Kept == *y.Kept)
}

// candidate is one claim to a name.
type candidate struct {
	part       *part
	definition *tool.Definition
	order      int // of the claim, by the configuration
}

func (c candidate) origin() Origin {
	return Origin{c.part.identity.Source, c.part.identity.Name, c.definition.OwnName}
}

// contestable reports whether the name could be a built-in's: those of MCP servers have a prefix of their own, unless the
// operator took it away.
func (c candidate) contestable() bool {
	return !c.builtin() && !strings.HasPrefix(c.definition.Name, mcpPrefix) && !strings.HasPrefix(c.definition.Name, connectorPrefix)
}

func (c candidate) builtin() bool { return c.part.identity.Source == tool.SourceBuiltin }

// settle decides who has a name: the winner, if any, and those who are refused. Nothing is renamed and no third party
// wins by coming first, so that the outcome does not depend on the order in which providers start. Tools of a disabled
// provider hold a name only while nobody else wants it.
func settle(claims []candidate) (winner *candidate, refused []candidate) {
	if len(claims) == 1 {
		return &claims[0], nil
	}
	if open := slices.DeleteFunc(slices.Clone(claims), func(c candidate) bool { return c.part.closed == provider.Disabled }); len(open) > 0 {
		claims = open
	}
	if len(claims) == 1 {
		return &claims[0], nil
	}
	var builtin *candidate
	var third []int
	for i, c := range claims {
		switch {
		case !c.builtin():
			third = append(third, i)
		case builtin == nil:
			builtin = &claims[i]
		default:
			refused = append(refused, c) // a second built-in of the name
		}
	}
	if builtin == nil {
		if len(third) == 1 {
			return &claims[third[0]], refused
		}
		return nil, claims
	}
	override := slices.DeleteFunc(slices.Clone(third), func(i int) bool { return !claims[i].part.identity.Override })
	winner = builtin
	if len(override) == 1 {
		winner = &claims[override[0]]
	}
	for _, i := range third {
		if &claims[i] != winner {
			refused = append(refused, claims[i])
		}
	}
	return winner, refused
}
