package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Entry is one tool of a snapshot.
type Entry struct {
	Definition *tool.Definition
	Provider   provider.Provider

	part    *part
	unmet   string // why its precondition does not hold
	refused string // why it is quarantined although its provider runs
	digest  digest
	tokens  atomic.Int32 // 0: not counted yet
}

// Identity is what the operator's block says about the tool's provider.
func (e *Entry) Identity() provider.Identity { return e.part.identity }

// Digest identifies everything that the definition says.
func (e *Entry) Digest() string { return hex.EncodeToString(e.digest[:]) }

// Tokens estimates what the tool's definition takes of a context: its name, its description and its schema as compact JSON.
func (e *Entry) Tokens() int {
	if n := e.tokens.Load(); n > 0 {
		return int(n)
	}
	d := e.Definition
	chars := utf8.RuneCountInString(d.Name) + utf8.RuneCountInString(d.Description) + compactLength(d.InputSchema) + len(`{"name":"","description":"","parameters":}`)
	n := TokensOf(chars)
	e.tokens.Store(int32(n))
	return n
}

// TokensOf estimates the tokens of that many characters: a quarter, rounded up, as everyone in this field counts.
func TokensOf(chars int) int { return (chars + 3) / 4 }

func compactLength(raw json.RawMessage) int {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return utf8.RuneCount(raw)
	}
	return utf8.RuneCount(b.Bytes())
}

// Condition is how a tool can be had right now.
type Condition string

// The conditions of a tool.
const (
	Available   Condition = "available"
	Unavailable Condition = "unavailable" // its provider is down; it stays listed and ranked
	Unmet       Condition = "unmet"       // its precondition does not hold
	Quarantined Condition = "quarantined" // refused until the operator accepts it
	Disabled    Condition = "disabled"    // its provider is switched off by the operator
)

// Availability is a condition with its reason, one line for agents and operators ("" if available).
type Availability struct {
	Condition Condition
	Reason    string
}

// State tells how the tool can be had at this moment. It asks the provider's current status; nothing is cached.
func (e *Entry) State() Availability {
	switch {
	case e.refused != "":
		return Availability{Quarantined, e.refused}
	case e.unmet != "":
		return Availability{Unmet, e.unmet}
	}
	return availability(e.Provider.Offer().Status)
}

func availability(s provider.Status) Availability {
	why := func(text string) string {
		if s.Reason == "" {
			return text
		}
		return fmt.Sprintf("%s: %s", text, s.Reason)
	}
	switch s.State {
	case provider.Ready, provider.Installed, provider.Starting, provider.Draining: // a call waits, if it has to
		return Availability{Condition: Available}
	case provider.Disabled:
		return Availability{Disabled, why("its provider is switched off by the operator")}
	case provider.Quarantined:
		return Availability{Quarantined, why("its provider is quarantined until the operator acts")}
	case provider.Backoff:
		return Availability{Unavailable, why("its provider is down and will be started again by itself")}
	default:
		return Availability{Unavailable, why("its provider is not running")}
	}
}
