package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// startTimeout bounds the start of a plugin.
const startTimeout = 20 * time.Second

// Start serves a plugin in this process and configures it. The test fails if the plugin is not sound or refuses its
// configuration; see [Configure] for testing that.
func Start(t testing.TB, p *pluginsdk.Plugin, opts *Options) *Session {
	t.Helper()
	o := opts.orDefault()
	for name, value := range o.Env {
		t.Setenv(name, value)
	}
	s := open(t, p, o)
	for _, fault := range configure(t, s, o) {
		if !fault.Warning {
			t.Fatalf("the plugin refuses its configuration: %v", fault)
		}
	}
	grants := o.Grant
	if grants == nil {
		grants = p.Capabilities
	}
	return &Session{opts: o, backend: &inProcess{session: s, host: o.Host, granted: grants}}
}

// Configure hands a configuration to a plugin and returns what it says about it: nothing if all is well.
func Configure(t testing.TB, p *pluginsdk.Plugin, config any) []*pluginsdk.ConfigError {
	t.Helper()
	o := (&Options{Config: config}).orDefault()
	return configure(t, open(t, p, o), o)
}

func open(t testing.TB, p *pluginsdk.Plugin, o *Options) *wire.Session {
	t.Helper()
	target := wire.InProcess{New: func() (pb.PluginServer, error) { return pluginsdk.NewServer(p) }}
	s, err := target.Open(t.Context(), &wire.OpenOptions{MaxMessageBytes: o.MaxMessageBytes})
	if err != nil {
		t.Fatalf("the plugin cannot start: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func configure(t testing.TB, s *wire.Session, o *Options) []*pluginsdk.ConfigError {
	t.Helper()
	config, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	diags, err := s.Configure(t.Context(), config, providerName, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var list []*pluginsdk.ConfigError
	for _, d := range diags {
		list = append(list, &pluginsdk.ConfigError{
			Path: d.GetPath(), Summary: d.GetSummary(), Detail: d.GetDetail(),
			Warning: d.GetSeverity() == pb.Diagnostic_SEVERITY_WARNING,
		})
	}
	return list
}

// inProcess is a plugin in this process.
type inProcess struct {
	session *wire.Session
	host    *Host
	granted []string
}

func (b *inProcess) tools(ctx context.Context) ([]string, error) {
	list, _, err := b.session.Tools(ctx)
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.GetName()
	}
	return names, err
}

func (b *inProcess) call(ctx context.Context, req *pb.InvokeRequest, o *Outcome) error {
	req.Granted = b.granted
	out, err := b.session.Call(ctx, req, b.host.answer(b.granted))
	if end := ctx.Err(); end != nil {
		code := pluginsdk.Cancelled
		if errors.Is(end, context.DeadlineExceeded) {
			code = pluginsdk.Timeout
		}
		o.Err = pluginsdk.Errorf(code, "%w", end)
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range out.Progress {
		o.Progress = append(o.Progress, Progress{p.GetDone(), p.GetTotal(), p.GetNote()})
	}
	for _, l := range out.Logs {
		o.Logs = append(o.Logs, Log{l.GetLevel(), l.GetData()})
	}
	if e := out.Err; e != nil {
		o.Err = &pluginsdk.Error{Code: pluginsdk.Code(e.GetCode()), Message: e.GetMessage(), Detail: e.GetDetail(),
			Retryable: e.GetRetryable(), Blame: e.GetBlame(), Pointer: e.GetPointer()}
		if len(e.GetExtra()) > 0 {
			return json.Unmarshal(e.GetExtra(), &o.Err.Extra)
		}
		return nil
	}
	for _, c := range out.Result.GetContent() {
		o.Content = append(o.Content, c)
	}
	o.IsError = out.Result.GetIsError()
	if s := out.Result.GetStructured(); len(s) > 0 {
		o.Structured = s
	}
	return nil
}

// StartBinary runs a built plugin under hermesd's own host, with certificates, and waits until it is ready.
func StartBinary(t testing.TB, path string, opts *Options) *Session {
	t.Helper()
	o := opts.orDefault()
	config, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	grants := o.Grant
	if grants == nil {
		grants = []string{pluginsdk.CanAskHuman, pluginsdk.CanCallTool, pluginsdk.CanSample, pluginsdk.CanStore}
	}
	changed := make(chan struct{}, 1)
	p, err := pluginhost.New(&pluginhost.Options{
		Name: providerName, Path: path, Args: o.Args, Env: o.Env, Config: config, Builtin: true, Grant: grants,
		StateDir: t.TempDir(), MaxMessageBytes: o.MaxMessageBytes, Isolation: pluginhost.IsolationNone,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		OnChange: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b := &hosted{p, o.Host}
	if err := b.ready(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	return &Session{opts: o, backend: b}
}

// hosted is a plugin's process under hermesd's host.
type hosted struct {
	*pluginhost.Provider
	host *Host
}

func (b *hosted) ready(ctx context.Context, changed <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		switch s := b.Offer().Status; s.State {
		case provider.Ready:
			return nil
		case provider.Quarantined, provider.Backoff:
			return fmt.Errorf("the plugin is %s: %s", s.State, s.Reason)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the plugin is still %s: %w", b.Offer().Status.State, ctx.Err())
		}
	}
}

func (b *hosted) tools(context.Context) ([]string, error) {
	var names []string
	for _, d := range b.Offer().Tools {
		names = append(names, d.OwnName)
	}
	return names, nil
}

func (b *hosted) call(ctx context.Context, req *pb.InvokeRequest, o *Outcome) error {
	var def *tool.Definition
	for _, d := range b.Offer().Tools {
		if d.OwnName == req.GetTool() {
			def = &d
		}
	}
	if def == nil {
		o.Err = pluginsdk.Errorf("unknown_tool", "the plugin has no tool %q", req.GetTool())
		return nil
	}
	r, err := b.Invoke(ctx, &provider.Request{Definition: def, Host: b.host.provider(o), Call: &tool.Call{
		ID: req.GetCallId(), Agent: req.GetAgent(), Session: req.GetSession(), Tool: def.Name,
		Arguments: req.GetArguments(), Attended: req.GetAttended(),
	}})
	if err != nil {
		e := tool.AsError(err)
		o.Err = &pluginsdk.Error{Code: pluginsdk.Code(e.Code), Message: e.Message, Detail: e.Detail, Retryable: e.Retryable,
			Blame: string(e.Blame), Pointer: e.Pointer, Extra: e.Extra}
		return nil
	}
	for _, c := range r.Content {
		o.Content = append(o.Content, pluginsdk.Content(c))
	}
	o.IsError, o.Structured = r.IsError, r.Structured
	return nil
}

// Intercept asks the plugin's hook for its decision. It works in this process only: a daemon reaches a hook by a way of its
// own.
func (s *Session) Intercept(t testing.TB, e *pluginsdk.HookEvent) pluginsdk.Decision {
	t.Helper()
	b, ok := s.backend.(*inProcess)
	if !ok {
		t.Fatal("plugintest: Intercept needs a plugin in this process: use Start")
	}
	payload := e.Raw
	if payload == nil {
		var err error
		if payload, err = json.Marshal(e); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), s.opts.Timeout)
	defer cancel()
	a, err := b.session.Intercept(ctx, &pb.InterceptRequest{Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	var d pluginsdk.Decision
	if err := json.Unmarshal(a.GetDecision(), &d); err != nil {
		t.Fatalf("the decision %s cannot be read: %v", a.GetDecision(), err)
	}
	return d
}
