package pluginsdk

import (
	"context"
	"encoding/json"
)

// Version is the SDK's own version, told to the host in Describe.
const Version = "1.0.0"

// The capabilities that a plugin can declare. The operator grants them by name in the plugin's block.
const (
	CanAskHuman = "ask_human"
	CanCallTool = "call_tool"
	CanSample   = "sample"
	CanStore    = "store"
	isHook      = "hooks" // declared for the author when Hook is set
)

// Plugin is what a program serves. Name and Version must be set, and there must be a tool, ListTools or a Hook.
type Plugin struct {
	Name        string // 1 to 64 characters of [A-Za-z0-9_-]
	Version     string // of the plugin, for people; semantic versioning is expected
	Description string // one or two sentences
	Homepage    string // a URL
	License     string // an SPDX identifier

	// Tools are the definitions that never change.
	Tools []Tool
	// ListTools adds tools that are known only once the plugin is configured. It is asked after Config has been applied and
	// whenever [ToolsChanged] is called. nil: none.
	ListTools func(context.Context) ([]Tool, error)
	// Config takes the operator's config block; see [NewConfig]. nil: the plugin takes none, and a block is an error.
	Config *Config
	// Capabilities name what the plugin wants to ask of the host, for example [CanAskHuman]. What is not declared is
	// refused.
	Capabilities []string
	// Hook decides on calls of any tool, before or after they run. A plugin with a Hook needs no tools. nil: no hook.
	Hook func(context.Context, *HookEvent) (*Decision, error)
	// Run is work beside the calls: watching, polling, keeping a connection. It starts once the plugin is configured, and
	// Serve waits for its end after its context is done. An error is logged. nil: none.
	Run func(context.Context) error
}

// HookEvent is what a hook decides on. The same JSON goes to hook scripts on stdin.
type HookEvent struct {
	Event       string          `json:"event"` // for example "pre_tool_call"
	CallID      string          `json:"call_id"`
	Tool        string          `json:"tool_name"`
	Toolset     string          `json:"toolset"`
	Source      string          `json:"source"`
	Args        json.RawMessage `json:"args"`
	Agent       string          `json:"agent"`
	Session     string          `json:"session_id"`
	Annotations json.RawMessage `json:"annotations"`
	Dir         string          `json:"cwd"`
	// Only after the call:
	Result     json.RawMessage `json:"result,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	Status     string          `json:"status,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	// Raw is the whole event, with keys that this version of the SDK does not know.
	Raw json.RawMessage `json:"-"`
}

// The actions of a [Decision].
const (
	Allow  = "allow"
	Block  = "block"
	Modify = "modify" // Args are merged into the call's arguments, key by key
	Ask    = "ask"    // a human decides
)

// Decision is a hook's answer.
type Decision struct {
	Action  string         `json:"action"`
	Message string         `json:"message,omitempty"`  // why, for the model and the human
	Args    map[string]any `json:"args,omitempty"`     // with [Modify]
	RuleKey string         `json:"rule_key,omitempty"` // names the reason, so that a grant can be bound to it
}
