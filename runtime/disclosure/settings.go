package disclosure

import (
	"cmp"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/catalog"
)

// Names are the names of the bridge tools.
type Names = catalog.BridgeNames

// The values of Settings.Enabled and Settings.Listing.
const (
	Auto = "auto"
	On   = "on"
	Off  = "off"
)

// The values of Settings.DirectCall.
const (
	Run     = "run"
	Explain = "explain"
)

// Settings are the keys of tool_search for one agent. The zero value is the default of every key. The configuration
// checks ranges; nothing here does it again.
type Settings struct {
	// Enabled is Auto (default: defer when the deferrable definitions take at least ThresholdPct of the context), On
	// (whenever there is a deferrable tool) or Off (never).
	Enabled string
	// ThresholdPct is a share of the context in percent; nil is 10.
	ThresholdPct *float64
	// Listing is Auto (default: within ListingPct and ListingMaxTokens), On (within ListingMaxTokens) or Off (one line a
	// source).
	Listing string
	// ListingPct is the listing's share of the context in percent; nil is 5.
	ListingPct *float64
	// ListingMaxTokens bounds the listing whatever its share; 0 is 4000.
	ListingMaxTokens int
	// SearchDefaultLimit is the number of matches of a search that names no limit; 0 is 5.
	SearchDefaultLimit int
	// MaxSearchLimit is the most matches that a search may ask for; 0 is 20.
	MaxSearchLimit int
	// ContextLength is the agent's context in tokens; 0 is 200,000.
	ContextLength int
	// Defer says which tools may be deferred.
	Defer policy.Defer
	// DirectCall is Run (default) or Explain.
	DirectCall string
	// Names renames the bridge tools.
	Names Names
}

// withDefaults returns the settings with every default filled in.
func (s Settings) withDefaults() Settings {
	s.Enabled = cmp.Or(s.Enabled, Auto)
	s.Listing = cmp.Or(s.Listing, Auto)
	s.DirectCall = cmp.Or(s.DirectCall, Run)
	if s.ThresholdPct == nil {
		s.ThresholdPct = new(10.0)
	}
	if s.ListingPct == nil {
		s.ListingPct = new(5.0)
	}
	s.ListingMaxTokens = cmp.Or(s.ListingMaxTokens, 4000)
	s.MaxSearchLimit = cmp.Or(s.MaxSearchLimit, 20)
	s.SearchDefaultLimit = min(cmp.Or(s.SearchDefaultLimit, 5), s.MaxSearchLimit)
	s.ContextLength = cmp.Or(s.ContextLength, 200_000)
	s.Names = s.Names.OrDefault()
	return s
}

// threshold is the number of tokens from which Auto defers.
func (s *Settings) threshold() float64 { return *s.ThresholdPct / 100 * float64(s.ContextLength) }

// listingBudget is how many characters the listing may have.
func (s *Settings) listingBudget() int {
	tokens := s.ListingMaxTokens
	if s.Listing != On {
		tokens = min(tokens, int(*s.ListingPct/100*float64(s.ContextLength)))
	}
	return tokens * charsPerToken
}
