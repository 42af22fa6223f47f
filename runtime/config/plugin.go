package config

import (
	"encoding/json"
	"time"
)

// Plugin is one plugin process. At most one of path and command says what to start; without them it is the plugin that
// `hermesd plugin install` put under the block's label.
type Plugin struct {
	// Name is the block's label; state, lock entry and source label go by it.
	Name string `label:"1-32"`
	// Path is the plugin's binary. A relative path starts at the configuration file's folder.
	Path string `key:"path" path:"true"`
	// Command is the program and its arguments, for plugins that need an interpreter. A program without a slash is looked up
	// in PATH.
	Command []string `key:"command"`
	// Args are the arguments of path, or of the installed plugin.
	Args []string `key:"args"`
	// Env are environment variables of the process, besides PATH, HOME, LANG and TZ.
	Env map[string]string `key:"env"`
	// PassEnv names variables of the daemon's own environment that the process may see.
	PassEnv []string `key:"pass_env"`
	// Config is the plugin's own configuration: any keys and blocks, handed to it as a JSON object that it checks against its
	// schema; nil without the block.
	Config json.RawMessage `key:"config"`
	// Trust is "builtin" for plugins whose word on coldness counts, else "external".
	Trust string `key:"trust" default:"external" in:"builtin|external"`
	// Start is "lazy" (at the first call, once its tools are known) or "eager".
	Start string `key:"start" default:"lazy" in:"lazy|eager"`
	// IdleTimeout stops a lazy plugin that had no call for this long; 0 never does.
	IdleTimeout time.Duration `key:"idle_timeout" default:"0s" min:"0s" max:"365d"`
	// StartTimeout is how long the process may take until it answers.
	StartTimeout time.Duration `key:"start_timeout" default:"10s" min:"100ms" max:"10m"`
	// StopGrace is how long it may take to stop before it is killed.
	StopGrace time.Duration `key:"stop_grace" default:"5s" min:"0s" max:"5m"`
	// Backoff is how long to wait before a failed plugin is started again.
	Backoff Backoff `key:"backoff"`
	// Quarantine is when to stop trying.
	Quarantine Quarantine `key:"quarantine"`
	// CallTimeout is the deadline of a call whose tool gives none; 0 takes tools { call_timeout }.
	CallTimeout time.Duration `key:"call_timeout" default:"0s" min:"0s" max:"24h"`
	// MTLS protects the plugin's socket with certificates, for 20 ms a start; without it only the socket's folder (mode
	// 0700) does.
	MTLS bool `key:"mtls" default:"true"`
	// SHA256 pins the binary by hand, in hexadecimal; another binary does not start.
	SHA256 string `key:"sha256"`
	// Isolation is "none", "default" (files, system calls, memory and descendants are confined, as far as the machine can) or
	// "strict" (no network and no capabilities besides, and of files only its own folder and what allow_read and
	// allow_write name). `hermesd plugin inspect` says what holds.
	Isolation string `key:"isolation" default:"default" in:"none|default|strict"`
	// AllowRead names files and folders that the process may read besides what isolation leaves it: the system's programs,
	// its own folder, and what args, env and config name.
	AllowRead []string `key:"allow_read" path:"true"`
	// AllowWrite names files and folders that it may change, too.
	AllowWrite []string `key:"allow_write" path:"true"`
	// MaxMemory bounds the process's private memory, unless isolation is "none".
	MaxMemory Size `key:"max_memory" default:"2GiB" min:"64MiB" max:"1TiB"`
	// Grant lists what the plugin may ask of the daemon: ask_human, call_tool, sample, store.
	Grant []string `key:"grant" each:"ask_human|call_tool|sample|store"`
	// MaxMessageBytes bounds one message in either direction.
	MaxMessageBytes Size `key:"max_message_bytes" default:"16MiB" min:"64KiB" max:"1GiB"`
	// Prefix names the plugin's tools NAME__TOOL (true), or TEXT__TOOL (a text).
	Prefix Prefix `key:"prefix"`
	// Override lets the plugin's tools replace built-ins of the same name.
	Override bool `key:"override" default:"false"`
	// Defer says whether the plugin's tools may be deferred; without it their coldness decides.
	Defer *bool `key:"defer"`
	// Enabled is false for a plugin that stays configured but is not started.
	Enabled bool `key:"enabled" default:"true"`

	Pos Position
}

// Installed reports whether the plugin store says what to start.
func (p *Plugin) Installed() bool { return p.Path == "" && len(p.Command) == 0 }

// Argv is the program and its arguments; the program is "" for an installed plugin.
func (p *Plugin) Argv() []string {
	if len(p.Command) > 0 {
		return p.Command
	}
	return append([]string{p.Path}, p.Args...)
}

// Prefix is what a provider's tool names start with when its block says so.
type Prefix struct {
	// Set is whether the key was written, and not as false.
	Set bool
	// Text is the prefix without the separator; "" keeps names as they are. For `prefix = true` it is the block's label.
	Text string
}
