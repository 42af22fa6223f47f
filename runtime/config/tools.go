package config

import "time"

// Tools holds what concerns all tools, whatever their provider.
type Tools struct {
	// ToolSearch is the bridge. `tool_search = true` is short for a block without keys, `tool_search = false` for
	// enabled = "off".
	ToolSearch ToolSearch `key:"tool_search" shorthand:"true"`
	// CallTimeout is the deadline of a call whose tool and provider give none.
	CallTimeout time.Duration `key:"call_timeout" default:"5m" min:"1s" max:"24h"`
	// MaxResultChars is how much of a result an agent gets at once, in characters; the rest is kept for result_read.
	MaxResultChars int `key:"max_result_chars" default:"100000" min:"1000" max:"10000000"`
	// ResultQuota bounds the disk space of kept results.
	ResultQuota Size `key:"result_quota" default:"512MiB" min:"1MiB" max:"1TiB"`
}

// ToolSearch says which tools are deferred and how the bridge presents them.
type ToolSearch struct {
	// Enabled is "auto" (defer when the deferrable schemas would take at least threshold_pct of the agent's context), "on"
	// (whenever there is a deferrable tool) or "off" (never).
	Enabled string `key:"enabled" default:"auto" in:"auto|on|off"`
	// ThresholdPct is the share of the context, in percent, from which "auto" defers.
	ThresholdPct float64 `key:"threshold_pct" default:"10" min:"0" max:"100"`
	// SearchDefaultLimit is the number of matches of a search that names no limit; at most max_search_limit.
	SearchDefaultLimit int `key:"search_default_limit" default:"5" min:"1" max:"50"`
	// MaxSearchLimit is the most matches that a search may ask for.
	MaxSearchLimit int `key:"max_search_limit" default:"20" min:"1" max:"50"`
	// Listing is whether the bridge's text lists the deferred tools by name: "auto" (when it fits its budget), "on" (up to
	// listing_max_tokens, whatever its share) or "off" (one line per source).
	Listing string `key:"listing" default:"auto" in:"auto|on|off"`
	// ListingPct is the listing's share of the context, in percent.
	ListingPct float64 `key:"listing_pct" default:"5" min:"0" max:"100"`
	// ListingMaxTokens bounds the listing whatever its share, in tokens.
	ListingMaxTokens int `key:"listing_max_tokens" default:"4000" min:"200" max:"60000"`
	// Defer names the built-ins to defer: names, globs, "toolset:NAME", "source:KIND". Without this key the curated list of
	// cold built-ins holds; a list replaces it; [] keeps every tool eager.
	Defer *[]string `key:"defer"`
	// Pin names tools that are always eager, whatever else says.
	Pin []string `key:"pin"`
	// DirectCall is "run" (a direct call of a deferred tool, or a tool_call of an eager one, runs) or "explain" (it is
	// answered with the right way to call).
	DirectCall string `key:"direct_call" default:"run" in:"run|explain"`
	// Learn lets tools that were called after a search rank higher for similar ones.
	Learn bool `key:"learn" default:"false"`
	// Names renames the bridge tools: keys search, describe, call. After loading it holds all three; an agent's names are
	// laid over these.
	Names map[string]string `key:"names" default:"{ search = \"tool_search\", describe = \"tool_describe\", call = \"tool_call\" }"`
	// Synonyms are words that a search treats alike, such as { ticket = ["issue", "bug"] }; an
	// agent's are added to these.
	Synonyms map[string][]string `key:"synonyms"`
}

// The keys of ToolSearch.Names.
const (
	BridgeSearch   = "search"
	BridgeDescribe = "describe"
	BridgeCall     = "call"
)
