package config

import "time"

// MCPServer is one MCP server. Exactly one of command and url says how to reach it.
type MCPServer struct {
	// Name is the block's label; its tools are named mcp__NAME__TOOL.
	Name string `label:"1-32"`
	// Command starts a server that speaks over its standard input and output: the program and its arguments. A program
	// without a slash is looked up in PATH; a relative path starts at the configuration file's folder.
	Command []string `key:"command"`
	// URL is the address of a server that speaks HTTP.
	URL string `key:"url"`
	// Cwd is the working folder of command; the default is the configuration file's folder.
	Cwd string `key:"cwd" path:"true"`
	// Env are environment variables of the process, besides PATH, HOME, LANG and TZ.
	Env map[string]string `key:"env"`
	// PassEnv names variables of the daemon's own environment that the process may see.
	PassEnv []string `key:"pass_env"`
	// Headers are sent with every request to url.
	Headers map[string]string `key:"headers"`
	// OAuth says how access tokens for url are had. Most servers need none of it: `hermesd mcp-server login NAME` is enough.
	OAuth OAuth `key:"oauth"`
	// Protocol is "auto" (the newest version that both know) or "2025-11-25" (the newest with sessions: for a server that does
	// not get on with an enquiry about newer ones, and cheaper, since the others repeat in each request what a session says once).
	Protocol string `key:"protocol" default:"auto" in:"auto|2025-11-25"`
	// Tools selects among the server's tools.
	Tools ToolFilter `key:"tools"`
	// Timeout is the deadline of a call.
	Timeout time.Duration `key:"timeout" default:"60s" min:"1s" max:"24h"`
	// ConnectTimeout is how long starting or connecting may take, the initial handshake included.
	ConnectTimeout time.Duration `key:"connect_timeout" default:"15s" min:"100ms" max:"10m"`
	// Start is "lazy" (at the first call, once its tools are known) or "eager".
	Start string `key:"start" default:"lazy" in:"lazy|eager"`
	// IdleTimeout stops a lazy server that had no call for this long, and to whose resources nobody subscribes; 0 never does.
	IdleTimeout time.Duration `key:"idle_timeout" default:"10m" min:"0s" max:"365d"`
	// MaxLifetime restarts a server after this time, between calls; 0 never does.
	MaxLifetime time.Duration `key:"max_lifetime" default:"0s" min:"0s" max:"365d"`
	// StopGrace is how long a process may take to stop before it is killed.
	StopGrace time.Duration `key:"stop_grace" default:"5s" min:"0s" max:"5m"`
	// Backoff is how long to wait before a failed server is started, or connected to, again. It is tried for ever.
	Backoff Backoff `key:"backoff"`
	// Parallel says that the server takes calls side by side; without it calls run one after the other, except those of
	// tools that say read-only.
	Parallel bool `key:"parallel" default:"false"`
	// Resources offers the server's resources to the agents that may use the server as a whole.
	Resources bool `key:"resources" default:"false"`
	// Prompts offers the server's prompts to the agents that may use the server as a whole.
	Prompts bool `key:"prompts" default:"false"`
	// Prefix replaces mcp__NAME before tool names: TEXT__TOOL (a text), NAME__TOOL (true), or the names as they are ("").
	Prefix Prefix `key:"prefix"`
	// Override lets the server's tools replace built-ins of the same name.
	Override bool `key:"override" default:"false"`
	// Defer says whether the server's tools may be deferred; without it they may.
	Defer *bool `key:"defer"`
	// Isolation is "none", "default" or "strict", as for plugins.
	Isolation string `key:"isolation" default:"default" in:"none|default|strict"`
	// AllowRead names files and folders that the process may read besides what isolation leaves it: the system's programs,
	// its own folder, and what command, cwd and env name.
	AllowRead []string `key:"allow_read" path:"true"`
	// AllowWrite names files and folders that it may change, too.
	AllowWrite []string `key:"allow_write" path:"true"`
	// MaxMemory bounds the process's private memory, unless isolation is "none".
	MaxMemory Size `key:"max_memory" default:"2GiB" min:"64MiB" max:"1TiB"`
	// MaxMessageBytes bounds one message from the server.
	MaxMessageBytes Size `key:"max_message_bytes" default:"16MiB" min:"64KiB" max:"1GiB"`
	// Enabled is false for a server that stays configured but is not used.
	Enabled bool `key:"enabled" default:"true"`

	Pos Position
}

// ToolFilter selects tools by their own names, without prefix. Exclude wins.
type ToolFilter struct {
	// Include are names and globs of the tools to offer; an empty list offers none.
	Include []string `key:"include" default:"[\"*\"]"`
	// Exclude are names and globs of the tools to leave out.
	Exclude []string `key:"exclude"`
}
