package config

// LocalAgent is the name of the agent that the programs of the person who runs the daemon are, without a token.
const LocalAgent = "local"

// Agent is a principal: its token, what it may use, and how its tools are shown to it.
type Agent struct {
	// Name is the block's label.
	Name string `label:"1-64"`
	// TokenSHA256 is the SHA-256 of the agent's bearer token in hexadecimal; `hermesd agent token NAME` prints both. An agent
	// without one can only connect over the unix socket; but the agent "local" also over HTTP from this machine, for the
	// programs of the person who runs the daemon.
	TokenSHA256 string `key:"token_sha256"`
	// Toolsets are what the agent may use: toolset names, "core", "mcp:NAME", "mcp:*", "plugin:NAME", or "*". Without this
	// key an agent has every toolset; [] gives it none.
	Toolsets *[]string `key:"toolsets"`
	// Exclude is subtracted last, whatever brought a tool in: tool names, globs and "toolset:NAME".
	Exclude []string `key:"exclude"`
	// ContextLength is the model's context window in tokens; the thresholds of tool_search are shares of it.
	ContextLength int `key:"context_length" default:"200000" min:"1000" max:"100000000"`
	// Attended says that a human can be asked while the agent works; an unattended agent's approvals are denied at once.
	Attended bool `key:"attended" default:"false"`
	// ToolSearch overrides keys of tools { tool_search } for this agent; keys that it does not name have the values from
	// there.
	ToolSearch ToolSearch `key:"tool_search" inherit:"true"`
	// Guard overrides keys of guard for this agent.
	Guard Guard `key:"guard" inherit:"true"`
	// Enabled is false for an agent that stays configured and cannot connect. An agent "local" that is not enabled is the way
	// to have none without a token: a person's daemon otherwise has one, beside those that are configured.
	Enabled bool `key:"enabled" default:"true"`

	Pos Position
}

// Toolset is a named group of tools.
type Toolset struct {
	// Name is the block's label.
	Name string `label:"1-64"`
	// Include lists what the toolset consists of: toolset names (of this file or of a provider), "core", "mcp:NAME",
	// "mcp:*", "plugin:NAME", or "*". Toolsets that include each other are resolved once.
	Include []string `key:"include" required:"true"`

	Pos Position
}
