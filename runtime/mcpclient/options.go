package mcpclient

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

// Options says how one MCP server is reached and what of it is offered. Exactly one of Command and URL is needed.
type Options struct {
	// Name is the label of the server's block: part of its tools' names.
	Name string
	// Command is the program and its arguments, for a server that speaks over its standard input and output.
	Command []string
	// Dir is the working folder of Command ("": the daemon's).
	Dir string
	// URL is the address of a server that speaks streamable HTTP, or only the older HTTP with SSE.
	URL string
	// Env is set for Command besides PATH, HOME, LANG and TZ; PassEnv names further variables of the daemon's environment
	// that the process may see.
	Env     map[string]string
	PassEnv []string
	// Sessions keeps to protocol versions that have sessions, up to 2025-11-25 (false: the newest that both know).
	Sessions bool
	// Headers go with every request to URL, and to no other host.
	Headers map[string]string
	// OAuth brings access tokens to URL, unless Headers have an Authorization (nil: none).
	OAuth *oauth.Authorizer
	// Include and Exclude select tools by their own names; "*" and "?" match any characters. Exclude wins. An Include of
	// nil takes every tool, an empty one none.
	Include, Exclude []string
	// Timeout is the deadline of a call (0: 60 s).
	Timeout time.Duration
	// ConnectTimeout bounds starting or connecting, the handshake and the first list of tools included (0: 15 s).
	ConnectTimeout time.Duration
	// IdleTimeout stops a lazy server that had no call for this long, while nobody subscribes to its resources (0: never).
	// MaxLifetime restarts a server after this time, between calls (0: never). StopGrace is how long a process may take to
	// stop before it is killed (0: 5 s).
	IdleTimeout, MaxLifetime, StopGrace time.Duration
	// Backoff says how long to wait after failures; how many does not matter, since it is tried for ever.
	Backoff supervisor.Backoff
	// Lazy starts the server at its first call, once its tools are known from CacheDir.
	Lazy bool
	// Parallel says that the server takes calls side by side. Without it calls run one after the other, except those of
	// tools that say that they only read.
	Parallel bool
	// Defer overrides the deferral of its tools (nil: they may be deferred).
	Defer *bool
	// Prefix is put before tool names: nil gives mcp__NAME__TOOL, "" the names as they are, "x" gives x__TOOL.
	Prefix *string
	// Override lets its tools shadow built-ins of the same name.
	Override bool
	// Resources and Prompts offer the server's resources and prompts, see [provider.Library].
	Resources, Prompts bool
	// MaxMessageBytes bounds one message from the server (0: 16 MiB).
	MaxMessageBytes int
	// Isolation is "none", "default" or "strict" ("": default), for Command; StateDir is the process's own folder ("": none),
	// and Sandbox what isolation closes and opens besides: its level and folder are filled in.
	Isolation string
	StateDir  string
	Sandbox   sandbox.Options
	// Trust decides whether Command may start and which definitions may be used (nil: all are trusted).
	Trust Trust
	// CacheDir keeps the list of tools between runs ("": it is not kept).
	CacheDir string
	// Via are the ids of the daemons that requests come from, as [ViaHeader] has them (nil: they are not told).
	Via func() string
	// Version is hermesd's own, told to the server ("": "dev").
	Version string
	// Starts bounds how many providers start at once (nil: unbounded).
	Starts *supervisor.Gate
	// Logger gets what the operator should know, and the server's standard error (nil: discarded). It should name the server.
	Logger *slog.Logger
	// Mask hides secrets in what the server says, and in why it or a tool of it cannot be used (nil: none).
	Mask func(string) string
	// OnChange is called after a new offer was published (nil: nobody is told).
	OnChange func()
}

// Defaults of [Options].
const (
	defaultTimeout        = time.Minute
	defaultConnectTimeout = 15 * time.Second
	defaultStopGrace      = 5 * time.Second
	defaultMessageBytes   = 16 << 20
)

// complete checks o and returns a copy with its defaults filled in.
func (o *Options) complete() (*Options, error) {
	if o == nil {
		return nil, errors.New("mcp server: no options")
	}
	c := *o
	if c.Name == "" {
		return nil, errors.New("mcp server: name is empty; give the block a label")
	}
	if (len(c.Command) > 0) == (c.URL != "") {
		return nil, fmt.Errorf("mcp server %q: give exactly one of command and url", c.Name)
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		return nil, fmt.Errorf("mcp server %q: command[0] is empty; name a program", c.Name)
	}
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: url: %w", c.Name, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("mcp server %q: url %q is not an http or https address", c.Name, c.URL)
		}
	}
	if !sandbox.Valid(c.Isolation) {
		return nil, fmt.Errorf("mcp server %q: isolation %q: want none, default or strict", c.Name, c.Isolation)
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.StopGrace = cmp.Or(c.StopGrace, defaultStopGrace)
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, defaultMessageBytes)
	c.Version = cmp.Or(c.Version, "dev")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Mask == nil {
		c.Mask = func(s string) string { return s }
	}
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	return &c, nil
}
