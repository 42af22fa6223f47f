package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Rule is one line of policy. Rules are read in order: the first deny that matches wins, then the first ask, then allow.
type Rule struct {
	// Name is the block's label, any text.
	Name string `label:"text"`
	// When is the condition, an expression over tool, args, agent and session. In JSON syntax it is a text that holds the
	// expression.
	When hcl.Expression `key:"when" required:"true"`
	// Action is what happens when it matches.
	Action string `key:"action" required:"true" in:"allow|ask|deny"`
	// Grants are what the human may choose when asked.
	Grants []string `key:"grants" default:"[\"once\", \"session\", \"always\"]" each:"once|session|always"`
	// Reason is told to the human who is asked and to the agent that is refused.
	Reason string `key:"reason"`

	// Text is the source of When.
	Text string
	Pos  Position
}

// Hook is code of the operator's before or after a call. Exactly one of exec, webhook and plugin says what runs.
type Hook struct {
	// Name is the block's label.
	Name string `label:"1-64"`
	// On is the event.
	On string `key:"on" required:"true" in:"pre_call|post_call|transform_result|approval_requested|approval_decided|provider_state"`
	// Match lists the tools that it concerns: name globs, "toolset:NAME", "source:KIND".
	Match []string `key:"match" default:"[\"*\"]"`
	// Exec is a program and its arguments; it gets the event on standard input.
	Exec []string `key:"exec"`
	// Webhook is a URL that the event is posted to: https, or http on loopback.
	Webhook string `key:"webhook"`
	// Secret signs the webhook's requests (HMAC-SHA256).
	Secret string `key:"secret" secret:"true"`
	// Plugin is the label of a plugin that serves hooks.
	Plugin string `key:"plugin"`
	// Timeout is how long the hook may take.
	Timeout time.Duration `key:"timeout" default:"10s" min:"10ms" max:"10m"`
	// OnError is what happens to the call when the hook fails, times out or answers nonsense: "block" or "allow". The default
	// is "block" for pre_call and "allow" for the other events.
	OnError string `key:"on_error" in:"block|allow"`
	// Enabled is false for a hook that stays configured but does not run.
	Enabled bool `key:"enabled" default:"true"`

	Pos Position
}

// Approvals says how humans are asked.
type Approvals struct {
	// Mode is "manual" (ask), "off" (rules that ask allow; deny and floor rules stay) or "deny" (rules that ask deny).
	Mode string `key:"mode" default:"manual" in:"manual|off|deny"`
	// Wait is how long a call waits for an answer before it answers approval_pending.
	Wait time.Duration `key:"wait" default:"50s" min:"0s" max:"1h"`
	// Timeout is how long a request stays open; it then counts as denied.
	Timeout time.Duration `key:"timeout" default:"5m" min:"1s" max:"24h"`
	// Group is the operating system's group whose members may approve over the admin socket; without it only the daemon's
	// own user and root may.
	Group string `key:"group"`
	// Webhook is a URL that is asked, too: https, or http on loopback.
	Webhook string `key:"webhook"`
	// Secret signs the webhook's requests and answers (HMAC-SHA256).
	Secret string `key:"secret" secret:"true"`
}

// Guard bounds what one agent may do, and ends loops. In every key 0 means no limit.
type Guard struct {
	// CallsPerMinute bounds the rate of calls of one agent.
	CallsPerMinute int `key:"calls_per_minute" default:"0" min:"0" max:"10000000"`
	// ConcurrentCalls bounds the calls of one agent that run at once.
	ConcurrentCalls int `key:"concurrent_calls" default:"256" min:"0" max:"100000"`
	// SameCallWarn is the number of identical failing calls of a session from which the agent is warned.
	SameCallWarn int `key:"same_call_warn" default:"2" min:"0" max:"1000"`
	// SameCallBlock is the number from which the call is refused.
	SameCallBlock int `key:"same_call_block" default:"5" min:"0" max:"1000"`
	// SameToolWarn is the number of failing calls of one tool in a session from which the agent is warned.
	SameToolWarn int `key:"same_tool_warn" default:"3" min:"0" max:"1000"`
	// SameToolBlock is the number from which the tool is refused.
	SameToolBlock int `key:"same_tool_block" default:"8" min:"0" max:"1000"`
}
