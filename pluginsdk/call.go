package pluginsdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
)

// frame is what the SDK keeps with a running call.
type frame struct {
	plugin *Plugin
	tool   *Tool
	hide   *redactor
}

type frameKey struct{}

func frameFrom(ctx context.Context) *frame {
	f, _ := ctx.Value(frameKey{}).(*frame)
	return f
}

// CallInfo is what the host says about a running call.
type CallInfo struct {
	ID          string   // unique for ever
	Tool        string   // the tool's own name
	Agent       string   // who calls: whatever the plugin keeps belongs to this agent
	Session     string   // the conversation, scoped to the agent; "" if none
	Attended    bool     // a human can be asked
	Granted     []string // the capabilities that the operator granted
	Depth       int      // how many plugin calls it is nested in; 0 for an agent's own call
	TraceParent string   // W3C trace context, "" if none
}

// CurrentCall returns the call that ctx belongs to. Outside a call it is the zero value.
func CurrentCall(ctx context.Context) CallInfo {
	c := serve.CallFrom(ctx)
	if c == nil {
		return CallInfo{}
	}
	r := c.Request
	return CallInfo{ID: r.GetCallId(), Tool: r.GetTool(), Agent: r.GetAgent(), Session: r.GetSession(), Attended: r.GetAttended(),
		Granted: slices.Clone(r.GetGranted()), Depth: int(r.GetDepth()), TraceParent: r.GetTraceparent()}
}

// Progress tells the caller how far the running call is. Total 0 means unknown; done should only grow. Outside a call
// it does nothing.
func Progress(ctx context.Context, done, total float64, note string) {
	if c := serve.CallFrom(ctx); c != nil {
		c.Progress(done, total, note)
	}
}

// StateDir returns a directory of the plugin's own that survives restarts, "" if the host gave none. Two blocks of one
// plugin have two directories.
func StateDir(ctx context.Context) string {
	if s := serve.FromContext(ctx); s != nil {
		return s.Info().GetStateDir()
	}
	return ""
}

// ProviderName returns the label of the operator's block, "" if the plugin was not started by a host.
func ProviderName(ctx context.Context) string {
	if s := serve.FromContext(ctx); s != nil {
		return s.Info().GetProvider()
	}
	return ""
}

// ToolsChanged makes the SDK ask [Plugin.ListTools] again and tells the host if anything is different. ctx must come
// from the SDK: of a call, of Run or of Config.
func ToolsChanged(ctx context.Context) error {
	s := serve.FromContext(ctx)
	if s == nil {
		return errForeignContext
	}
	return s.ToolsChanged(ctx)
}

// AvailabilityChanged tells the host to ask at once whether the tools named (none: all) are available.
func AvailabilityChanged(ctx context.Context, tools ...string) error {
	s := serve.FromContext(ctx)
	if s == nil {
		return errForeignContext
	}
	s.AvailabilityChanged(tools)
	return nil
}

var errForeignContext = errors.New("the context does not come from the SDK: pass on the one that the handler, Run or Config got")

// SecretValues are the environment variables that the running tool declares in RequiresEnv.
type SecretValues struct{ names []string }

// Secrets returns the values that the running tool may read. The SDK blots them out of the call's log lines and errors,
// so that a failing HTTP client cannot show a key to a model.
func Secrets(ctx context.Context) SecretValues {
	if f := frameFrom(ctx); f != nil {
		return SecretValues{f.tool.options.RequiresEnv}
	}
	return SecretValues{}
}

// Get returns a value. The error says what the operator has to do.
func (s SecretValues) Get(name string) (string, error) {
	if !slices.Contains(s.names, name) {
		return "", fmt.Errorf("the tool does not declare %s in RequiresEnv", name)
	}
	return lookupSecret(name)
}

func lookupSecret(name string) (string, error) {
	if v := os.Getenv(name); v != "" {
		return v, nil
	}
	return "", Errorf(NotAvailable, "the environment variable %s is not set; the operator must name it in pass_env (or set it in env) in the plugin's block", name)
}

// redactor blots values out of texts.
type redactor struct{ replace *strings.Replacer }

// shortestSecret is the length below which a value is too ordinary to be blotted out.
const shortestSecret = 6

func newRedactor(names []string) *redactor {
	var pairs []string
	for _, name := range names {
		if v := os.Getenv(name); len(v) >= shortestSecret {
			pairs = append(pairs, v, "[redacted]")
		}
	}
	if pairs == nil {
		return &redactor{}
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

func (r *redactor) text(s string) string {
	if r == nil || r.replace == nil {
		return s
	}
	return r.replace.Replace(s)
}

func (r *redactor) error(e *Error) *Error {
	if r.replace == nil {
		return e
	}
	clean := *e
	clean.Message, clean.Detail = r.text(e.Message), r.text(e.Detail)
	return &clean
}
