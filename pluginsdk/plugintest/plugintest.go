// Package plugintest tests plugins that are written with pluginsdk.
//
// [Start] serves a plugin inside the test's process, over the real contract; [StartBinary] runs a built program under
// hermesd's own host, as a daemon would. Both give a [Session] whose calls look the same, so that a test can be written
// once and run on both. A [Case] is a list of steps with what is expected of each; results can be kept as golden files,
// which `go test -update` writes. [Host] plays the daemon's side: the human who is asked, the model, other tools.
//
// [Conformance] checks what no author wants to write down: that the description is stable, that schemas compile and
// examples fit them, that wrong arguments are refused, a cancelled call ends, a panic is contained, nothing is printed on
// stdout and nothing leaks.
//
//	func TestPlugin(t *testing.T) {
//		plugintest.Conformance(t, newPlugin, nil)
//		s := plugintest.Start(t, newPlugin(), nil)
//		s.Run(t, plugintest.Case{Name: "greets by name", Steps: []plugintest.Step{
//			{Tool: "greet", Args: map[string]any{"name": "Ada"}, Want: map[string]any{"greeting": "Hello, Ada!"}},
//		}})
//	}
package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

const (
	// callTimeout bounds a call that no option bounds.
	callTimeout = 30 * time.Second
	// providerName is the label of the operator's block that the plugin sees.
	providerName = "test"
	// defaultAgent is who calls if a step does not say.
	defaultAgent = "agent-1"
)

// Options say how a plugin is started. nil means the defaults.
type Options struct {
	// Config is the operator's config block: a value that marshals to a JSON object; nil is the empty block.
	Config any
	// Env are environment variables for the plugin. In the test's own process they are set with t.Setenv.
	Env map[string]string
	// Args are arguments of a binary.
	Args []string
	// Grant lists what the plugin may ask of the host; nil is all that it declares, an empty list is nothing.
	Grant []string
	// Host plays the daemon; nil refuses every request but those of the store.
	Host *Host
	// Unattended says that no human can be asked.
	Unattended bool
	// Timeout bounds one call; 0 is 30 s.
	Timeout time.Duration
	// MaxMessageBytes bounds one message, so that results come in pieces; 0 is 16 MiB.
	MaxMessageBytes int
}

func (o *Options) orDefault() *Options {
	full := Options{}
	if o != nil {
		full = *o
	}
	if full.Timeout <= 0 {
		full.Timeout = callTimeout
	}
	if full.Host == nil {
		full.Host = &Host{}
	}
	return &full
}

func (o *Options) config() (json.RawMessage, error) {
	if o.Config == nil {
		return json.RawMessage("{}"), nil
	}
	raw, err := asJSON(o.Config)
	if err != nil {
		return nil, fmt.Errorf("plugintest: Options.Config: %w", err)
	}
	return raw, nil
}

// Session is a started plugin. It ends with the test that started it.
type Session struct {
	opts    *Options
	backend backend
	calls   atomic.Uint64
}

// backend is where a call goes.
type backend interface {
	call(ctx context.Context, req *pb.InvokeRequest, o *Outcome) error
	tools(ctx context.Context) ([]string, error)
}

// Tools lists the names of the plugin's tools, in its order.
func (s *Session) Tools(t testing.TB) []string {
	t.Helper()
	names, err := s.backend.tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Call calls a tool as the agent "agent-1". args is a value that marshals to a JSON object, or JSON as a string, as bytes
// or as a json.RawMessage; nil is the empty object.
func (s *Session) Call(t testing.TB, name string, args any) *Outcome {
	t.Helper()
	return s.CallAs(t, defaultAgent, name, args)
}

// CallAs calls a tool as another agent: what a plugin keeps belongs to one agent and must not be seen by another.
func (s *Session) CallAs(t testing.TB, agent, name string, args any) *Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.opts.Timeout)
	defer cancel()
	return s.CallContext(ctx, t, agent, name, args)
}

// CallContext is [Session.CallAs] with a context of the test's own, to cancel the call or to give it a deadline.
func (s *Session) CallContext(ctx context.Context, t testing.TB, agent, name string, args any) *Outcome {
	t.Helper()
	raw, err := asJSON(args)
	if err != nil {
		t.Fatalf("the arguments of %s: %v", name, err)
	}
	req := &pb.InvokeRequest{
		CallId: fmt.Sprintf("call-%d", s.calls.Add(1)), Tool: name, Arguments: raw, Agent: agent, Session: "session-" + agent,
		Attended: !s.opts.Unattended,
	}
	if end, ok := ctx.Deadline(); ok {
		req.DeadlineUnixMs = uint64(max(end.UnixMilli(), 1))
	}
	o := &Outcome{}
	began := time.Now()
	if err := s.backend.call(ctx, req, o); err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	o.Duration = time.Since(began)
	return o
}

// asJSON marshals a value, unless it is JSON already.
func asJSON(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("{}"), nil
	case string:
		return json.RawMessage(v), nil
	case []byte:
		return v, nil
	}
	return json.Marshal(v)
}

// Build builds the main package in a folder and returns the program's path; it is gone with the test.
func Build(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", dir, err, &said)
	}
	return path
}

// Outcome is everything that came back from one call.
type Outcome struct {
	Content    []pluginsdk.Content
	Structured json.RawMessage // nil if there is none
	IsError    bool            // the tool ran and says that it failed
	Err        *pluginsdk.Error
	Progress   []Progress
	Logs       []Log
	Duration   time.Duration
}

// Progress is one step that a tool reported.
type Progress struct {
	Done, Total float64
	Note        string
}

// Log is one line that a tool logged for its caller.
type Log struct {
	Level string
	Data  json.RawMessage
}

// Text joins the text blocks of the result with newlines.
func (o *Outcome) Text() string {
	var parts [][]byte
	for _, c := range o.Content {
		var block struct{ Type, Text string }
		if json.Unmarshal(c, &block) == nil && block.Type == "text" {
			parts = append(parts, []byte(block.Text))
		}
	}
	return string(bytes.Join(parts, []byte("\n")))
}

// Code is the error's code, "" if the call gave a result.
func (o *Outcome) Code() pluginsdk.Code {
	if o.Err == nil {
		return ""
	}
	return o.Err.Code
}
