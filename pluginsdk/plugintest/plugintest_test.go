package plugintest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
)

// TestMain lets this test binary be the plugin, so that no second build is needed.
func TestMain(m *testing.M) {
	if os.Getenv("PLUGINTEST_PLUGIN") != "" {
		pluginsdk.Serve(newPlugin())
		return
	}
	os.Exit(m.Run())
}

type settings struct {
	Greeting string `json:"greeting,omitempty" default:"Hello" maxLength:"20"`
}

type who struct {
	Name string `json:"name" maxLength:"1000"`
}

type greeting struct {
	Greeting string `json:"greeting"`
}

// newPlugin has a tool for everything that a session can show.
func newPlugin() *pluginsdk.Plugin {
	var config settings
	readOnly := &pluginsdk.ToolOptions{ReadOnly: true, ParallelSafe: true, Examples: []any{who{"Ada"}}}
	return &pluginsdk.Plugin{
		Name: "subject", Version: "1.0.0",
		Capabilities: []string{pluginsdk.CanAskHuman, pluginsdk.CanCallTool, pluginsdk.CanSample, pluginsdk.CanStore},
		Config: pluginsdk.NewConfig(func(_ context.Context, c settings) error {
			if c.Greeting == "Boo" {
				return &pluginsdk.ConfigError{Path: "/greeting", Summary: "is rude", Detail: "be kind"}
			}
			config = c
			return nil
		}),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("greet", "Greets.", func(ctx context.Context, in who) (greeting, error) {
				pluginsdk.Progress(ctx, 1, 2, "thinking")
				pluginsdk.Logger(ctx).Info("greeting")
				return greeting{config.Greeting + ", " + in.Name + "!"}, nil
			}, readOnly),
			pluginsdk.NewTool("big", "A long text.", func(context.Context, struct{}) (string, error) {
				return strings.Repeat("x", 300_000), nil
			}, nil),
			pluginsdk.NewTool("whoami", "Says who calls.", func(ctx context.Context, _ struct{}) (string, error) {
				return pluginsdk.CurrentCall(ctx).Agent, nil
			}, nil),
			pluginsdk.NewTool("refuse", "Always refuses.", func(context.Context, struct{}) (string, error) {
				return "", pluginsdk.InvalidArgument("/when", "not now").WithDetail("really")
			}, nil),
			pluginsdk.NewTool("wait", "Waits for its end.", func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, nil),
			pluginsdk.NewTool("panic", "Panics.", func(context.Context, struct{}) (string, error) { panic("oh dear") }, nil),
			pluginsdk.NewTool("ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
				a, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: "which?", Choices: []string{"red", "blue"}})
				return a.Action + " " + a.Choice(), err
			}, nil),
			pluginsdk.NewTool("delegate", "Calls another tool.", func(ctx context.Context, _ struct{}) (*pluginsdk.Result, error) {
				return pluginsdk.CallTool(ctx, "other", map[string]int{"n": 1})
			}, nil),
			pluginsdk.NewTool("dream", "Asks the model.", func(ctx context.Context, _ struct{}) (string, error) {
				raw, err := pluginsdk.Sample(ctx, map[string]any{"messages": []any{}})
				return string(raw), err
			}, nil),
			pluginsdk.NewTool("count", "Counts its calls.", func(ctx context.Context, _ struct{}) (string, error) {
				var store pluginsdk.Store
				old, _, err := store.Get(ctx, "count/"+pluginsdk.CurrentCall(ctx).Agent)
				if err != nil {
					return "", err
				}
				now := string(old) + "I"
				return now, store.Put(ctx, "count/"+pluginsdk.CurrentCall(ctx).Agent, []byte(now))
			}, nil),
		},
	}
}

// both runs a test on a session in this process and on one with the real program under the real host.
func both(t *testing.T, opts plugintest.Options, test func(*testing.T, *plugintest.Session)) {
	t.Run("in process", func(t *testing.T) {
		o := opts
		test(t, plugintest.Start(t, newPlugin(), &o))
	})
	t.Run("as a program under the host", func(t *testing.T) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o := opts
		o.Env = map[string]string{"PLUGINTEST_PLUGIN": "1"}
		test(t, plugintest.StartBinary(t, self, &o))
	})
}

func TestBothSessionsShowTheSame(t *testing.T) {
	host := &plugintest.Host{
		AskHuman: func(q pluginsdk.Question) (pluginsdk.Answer, error) {
			if diff := cmp.Diff([]string{"red", "blue"}, q.Choices); diff != "" {
				t.Error(diff)
			}
			return plugintest.Choose("blue"), nil
		},
		Sample: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"model":"m"}`), nil },
		CallTool: func(name string, args json.RawMessage) (*pluginsdk.Result, error) {
			return pluginsdk.TextResult("%s %s", name, args), nil
		},
	}
	both(t, plugintest.Options{Config: settings{Greeting: "Hi"}, Host: host}, func(t *testing.T, s *plugintest.Session) {
		if diff := cmp.Diff("greet", s.Tools(t)[0]); diff != "" {
			t.Error(diff)
		}
		s.Run(t,
			plugintest.Case{Name: "a result is compared as a value", Steps: []plugintest.Step{
				{Tool: "greet", Args: who{"Ada"}, Want: greeting{"Hi, Ada!"}, Golden: "greet"},
				{Tool: "greet", Args: `{"name":"Ada"}`, Check: func(t testing.TB, o *plugintest.Outcome) {
					if diff := cmp.Diff([]plugintest.Progress{{Done: 1, Total: 2, Note: "thinking"}}, o.Progress); diff != "" {
						t.Error(diff)
					}
					if diff := cmp.Diff([]plugintest.Log{{Level: "info", Data: json.RawMessage(`"greeting"`)}}, o.Logs); diff != "" {
						t.Error(diff)
					}
				}},
			}},
			plugintest.Case{Name: "errors are named by code and argument", Steps: []plugintest.Step{
				{Tool: "refuse", Error: pluginsdk.InvalidArguments, Pointer: "/when", Contains: "not now", Golden: "refuse"},
				{Tool: "greet", Args: `{}`, Error: pluginsdk.InvalidArguments},
				{Tool: "nothing", Error: "unknown_tool"},
				{Tool: "panic", Error: "plugin_panic"},
			}},
			plugintest.Case{Name: "the host's side is played", Steps: []plugintest.Step{
				{Tool: "ask", Want: "accept blue"},
				{Tool: "dream", Want: `{"model":"m"}`},
				{Tool: "delegate", Want: `other {"n":1}`},
			}},
			plugintest.Case{Name: "two agents keep apart what is theirs", Steps: []plugintest.Step{
				{Tool: "whoami", Agent: "bob", Want: "bob"},
				{Tool: "count", Want: "I"}, {Tool: "count", Want: "II"}, {Tool: "count", Agent: "bob", Want: "I"},
			}},
		)
	})
}

func TestWhatNobodyPlaysIsRefused(t *testing.T) {
	both(t, plugintest.Options{}, func(t *testing.T, s *plugintest.Session) {
		for _, name := range []string{"ask", "dream", "delegate"} {
			if got := s.Call(t, name, nil).Code(); got != pluginsdk.Unsupported {
				t.Errorf("%s: code %q", name, got)
			}
		}
	})
	both(t, plugintest.Options{Grant: []string{}}, func(t *testing.T, s *plugintest.Session) {
		for _, name := range []string{"ask", "dream", "delegate", "count"} {
			if got := s.Call(t, name, nil).Code(); got != pluginsdk.NotGranted {
				t.Errorf("%s: code %q", name, got)
			}
		}
	})
}

func TestACallCanBeCancelled(t *testing.T) {
	both(t, plugintest.Options{}, func(t *testing.T, s *plugintest.Session) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := s.CallContext(ctx, t, "agent-1", "wait", nil).Code(); got != pluginsdk.Cancelled {
			t.Errorf("code %q", got)
		}
	})
}

func TestBigResultsAreWhole(t *testing.T) {
	both(t, plugintest.Options{MaxMessageBytes: 64 << 10}, func(t *testing.T, s *plugintest.Session) {
		if got := len(s.Call(t, "big", nil).Text()); got != 300_000 {
			t.Errorf("%d bytes", got)
		}
	})
}

func TestAConfigurationCanBeTried(t *testing.T) {
	for config, want := range map[any][]*pluginsdk.ConfigError{
		`{"greeting":"Hey"}`: nil,
		`{"greeting":"Boo"}`: {{Path: "/greeting", Summary: "is rude", Detail: "be kind"}},
	} {
		if diff := cmp.Diff(want, plugintest.Configure(t, newPlugin(), config)); diff != "" {
			t.Errorf("%s: %s", config, diff)
		}
	}
}

func TestTheSubjectConforms(t *testing.T) { plugintest.Conformance(t, newPlugin, nil) }

// recorder is a testing.TB that only notes whether a test would have failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(errFailed) }
func (r *recorder) Fatal(...any)          { r.failed = true; panic(errFailed) }

var errFailed = errors.New("failed")

func TestAnUnsoundPluginFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if v := recover(); v != nil && v != any(errFailed) {
				panic(v)
			}
		}()
		plugintest.Start(r, &pluginsdk.Plugin{Name: "a b"}, nil)
	}()
	if !r.failed {
		t.Error("the test did not fail")
	}
}
