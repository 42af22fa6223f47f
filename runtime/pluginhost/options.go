// Package pluginhost is a provider over a plugin process: it starts the process when it is needed, speaks hermes.plugin.v1
// with it over go-plugin's gRPC connection, and makes sure that nothing the process does can hang the daemon.
//
// [Provider] is what the catalog and the pipeline see. Its supervisor keeps one [instance], a running process that has been
// described, configured and listed. go-plugin makes the connection and its certificates; the process is ours (see runner),
// since the library waits without a bound in several places.
package pluginhost

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The kinds of host requests that an operator can grant.
const (
	grantAsk    = "ask_human"
	grantCall   = "call_tool"
	grantSample = "sample"
	grantStore  = "store"
)

// The levels of isolation.
const (
	IsolationNone    = sandbox.None
	IsolationDefault = sandbox.Default
	IsolationStrict  = sandbox.Strict
)

// maxName bounds the label of a plugin's block: it is part of paths and of tool names.
const maxName = 32

// Options say what to run and how. Name and Path are required.
type Options struct {
	Name string // the label of the operator's block
	Path string // the binary; a name without a slash is looked up in PATH at every start
	// Installed finds the binary and the digest that it must have, at every start, in place of Path and SHA256.
	Installed func() (path, sha256 string, err error)
	Args      []string          // its arguments
	Env       map[string]string // variables of the process besides PATH, HOME, LANG and TZ
	// PassEnv names variables of the daemon's environment that the process may see.
	PassEnv []string
	// Config is the operator's config block, a JSON object; nil if there is none.
	Config json.RawMessage
	// Locate says where a key of Config is written, as "file:line", given by its JSON Pointer; "" and nil do not know.
	Locate func(pointer string) string
	// Builtin trusts the plugin's word on coldness.
	Builtin bool
	// Lazy starts the process with the first call, once its tools are known from an earlier start.
	Lazy bool
	// IdleTimeout stops a lazy plugin that had no call for this long; 0 never does.
	IdleTimeout time.Duration
	// StartTimeout bounds a start until its tools are listed; default 10 s.
	StartTimeout time.Duration
	// StopGrace is how long a stop may take before the process is killed; default 5 s.
	StopGrace time.Duration
	// Backoff says how long to wait after failures, and how many are too many; see there for what 0 means.
	Backoff supervisor.Backoff
	// CallTimeout is the deadline of a call whose tool names none: it becomes the tool's own. 0 leaves it to the caller.
	CallTimeout time.Duration
	// MTLS protects the connection with certificates; nil means that it does. Without it only the socket's folder (mode
	// 0700) does.
	MTLS *bool
	// MaxMessageBytes bounds one message in either direction; default 16 MiB.
	MaxMessageBytes int
	// Grant lists what the plugin may ask of the daemon: ask_human, call_tool, sample, store.
	Grant []string
	// StateDir is the plugin's own folder, which survives restarts. RuntimeDir is where its socket's folder is made (""
	// means the system's folder for temporary files). CacheDir keeps what is known of its tools ("" keeps nothing).
	StateDir, RuntimeDir, CacheDir string
	// KeysDir is where what it keeps by store requests is, out of its own reach; "" is beside StateDir, with the ending ".keys".
	KeysDir string
	// Prefix begins the names of its tools, followed by "__"; "" keeps the plugin's own names.
	Prefix string
	// Override lets its tools replace built-ins of the same name; Defer says whether they may be deferred (nil: their
	// coldness decides).
	Override bool
	Defer    *bool
	// SHA256 pins the binary, in hexadecimal; another does not start.
	SHA256 string
	// Trust decides whether a binary may start and which definitions may be used; nil trusts all.
	Trust Trust
	// Isolation is "none", "default" or "strict"; "" is default. [Provider.Inspect] says what of it the machine allowed.
	Isolation string
	// Sandbox is what isolation closes and opens besides; its level, program, configuration and folders are filled in.
	Sandbox sandbox.Options
	// Starts bounds the starts at once over all providers that share it.
	Starts *supervisor.Gate
	// Logger gets what the plugin and its host say; it should carry the provider's name. nil discards.
	Logger *slog.Logger
	// Mask hides secrets in what the plugin says of itself: its lines, and why it or a tool of it cannot be used. nil hides none.
	Mask func(string) string
	// OnChange is called after every published offer. It must not block.
	OnChange func()
}

// withDefaults returns a copy that is complete and valid.
func (o *Options) withDefaults() (*Options, error) {
	if o == nil {
		o = &Options{}
	}
	full := *o
	full.StartTimeout = cmp.Or(full.StartTimeout, 10*time.Second)
	full.StopGrace = cmp.Or(full.StopGrace, 5*time.Second)
	full.MaxMessageBytes = cmp.Or(full.MaxMessageBytes, pluginpb.MaxMessageBytes)
	full.Isolation = cmp.Or(full.Isolation, IsolationDefault)
	if full.Config == nil {
		full.Config = json.RawMessage("{}")
	}
	if full.Logger == nil {
		full.Logger = slog.New(slog.DiscardHandler)
	}
	if full.Mask == nil {
		full.Mask = func(s string) string { return s }
	}
	if full.OnChange == nil {
		full.OnChange = func() {}
	}
	return &full, full.validate()
}

func (o *Options) validate() error {
	switch {
	case !tool.ValidName(o.Name) || len(o.Name) > maxName:
		return fmt.Errorf("name %q: want 1 to %d characters of A-Z a-z 0-9 _ -", o.Name, maxName)
	case o.Path == "" && o.Installed == nil:
		return errors.New("no path: say which binary to start")
	case o.StateDir == "":
		return errors.New("no state folder")
	case within(o.StateDir, o.KeysDir):
		return fmt.Errorf("the folder of its keys, %s, is in its own folder, where it can plant anything", o.KeysDir)
	case !isObject(o.Config):
		return errors.New("config is not a JSON object")
	case o.MaxMessageBytes < 64<<10:
		return fmt.Errorf("max_message_bytes is %d: want at least 64 KiB", o.MaxMessageBytes)
	case !sandbox.Valid(o.Isolation):
		return fmt.Errorf("isolation %q: want none, default or strict", o.Isolation)
	}
	if o.SHA256 != "" {
		if raw, err := hex.DecodeString(o.SHA256); err != nil || len(raw) != 32 {
			return fmt.Errorf("sha256 %q: want 64 hexadecimal digits", o.SHA256)
		}
	}
	for _, g := range o.Grant {
		if !slices.Contains([]string{grantAsk, grantCall, grantSample, grantStore}, g) {
			return fmt.Errorf("grant %q: want ask_human, call_tool, sample or store", g)
		}
	}
	return nil
}

func (o *Options) keysDir() string { return cmp.Or(o.KeysDir, filepath.Clean(o.StateDir)+".keys") }

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return path != "" && err == nil && filepath.IsLocal(rel)
}

func (o *Options) mtls() bool { return o.MTLS == nil || *o.MTLS }

func (o *Options) granted(kind string) bool { return slices.Contains(o.Grant, kind) }

// isObject reports whether raw is one JSON object.
func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}
