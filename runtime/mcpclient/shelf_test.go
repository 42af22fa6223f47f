package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
)

// newLibrary is a server with one of everything besides tools.
func newLibrary(o mcp.ServerOptions) *mcp.Server {
	if o.SubscribeHandler == nil {
		o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	}
	if o.UnsubscribeHandler == nil {
		o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	}
	o.CompletionHandler = func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Ref.Name + r.Params.Ref.URI, r.Params.Argument.Value}}}, nil
	}
	s := newSDKServer(&o)
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "content of " + r.Params.URI}}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "note://a?x=1#y", Name: "a", Annotations: &mcp.Annotations{Priority: 0.5}}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note://{name}", Name: "notes"}, read)
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello " + r.Params.Arguments["who"]}}}}, nil
	})
	return s
}

func (r *running) shelf(what string, ok func(*provider.Shelf) bool) *provider.Shelf {
	r.t.Helper()
	r.await(what, func(*provider.Offer) bool { return r.Shelf() != nil && ok(r.Shelf()) })
	return r.Shelf()
}

func filled(s *provider.Shelf) bool {
	return len(s.Resources) > 0 && len(s.Templates) > 0 && len(s.Prompts) > 0
}

// fetch returns what a library answers, as a value.
func (r *running) fetch(f provider.Fetch, params string) any {
	r.t.Helper()
	f.Params = json.RawMessage(params)
	raw, err := r.Fetch(r.t.Context(), &f)
	if err != nil {
		r.t.Fatalf("%s: %v", f.Method, err)
	}
	return asJSON(r.t, raw)
}

func TestResourcesAndPrompts(t *testing.T) {
	for name, o := range map[string]mcp.ServerOptions{
		"protocol 2025-11-25": {SupportedProtocolVersions: []string{"2025-11-25"}},
		"protocol 2026-07-28": {},
	} {
		t.Run(name, func(t *testing.T) {
			server := newLibrary(o)
			cached := t.TempDir()
			stateless := &mcp.StreamableHTTPOptions{Stateless: o.SupportedProtocolVersions == nil}
			opts := mcpclient.Options{URL: serve(t, streamableHandler(t, server, stateless)).URL, Resources: true, Prompts: true, CacheDir: cached}
			r := start(t, opts)
			s := r.shelf("resources and prompts", filled)
			for what, got := range map[string]provider.Item{"mcp://kb/note://a?x=1#y": s.Resources[0], "mcp://kb/note://{name}": s.Templates[0], "mcp__kb__greet": s.Prompts[0]} {
				var named struct{ URI, URITemplate, Name string }
				if err := json.Unmarshal(got.Raw, &named); err != nil {
					t.Fatal(err)
				}
				if got.Name != what || named.URI+named.URITemplate != what && named.Name != what {
					t.Errorf("%s is named %s in %s", what, got.Name, got.Raw)
				}
			}
			want := asJSON(t, map[string]any{"contents": []any{map[string]any{"uri": "mcp://kb/note://b", "text": "content of note://b"}}})
			if diff := cmp.Diff(want, r.fetch(provider.Fetch{Method: provider.ReadResource, Name: "note://b", Namespace: s.Namespace}, `{"uri":"note://b"}`)); diff != "" {
				t.Errorf("a resource (-want +got):\n%s", diff)
			}
			want = asJSON(t, map[string]any{"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": "Hello Ada"}}}})
			if diff := cmp.Diff(want, r.fetch(provider.Fetch{Method: provider.GetPrompt, Name: "greet"}, `{"name":"greet","arguments":{"who":"Ada"}}`)); diff != "" {
				t.Errorf("a prompt (-want +got):\n%s", diff)
			}
			want = asJSON(t, map[string]any{"completion": map[string]any{"values": []string{"greet", "A"}}})
			if diff := cmp.Diff(want, r.fetch(provider.Fetch{Method: provider.Complete, Name: "greet"}, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}}`)); diff != "" {
				t.Errorf("a completion (-want +got):\n%s", diff)
			}
			var refusal *provider.Refusal
			if _, err := r.Fetch(t.Context(), &provider.Fetch{Method: provider.ReadResource, Name: "other://x", Params: json.RawMessage(`{"uri":"other://x"}`)}); !errors.As(err, &refusal) {
				t.Errorf("a resource that the server does not have: %v", err)
			}
			server.AddPrompt(&mcp.Prompt{Name: "later"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
			r.shelf("the new prompt", func(s *provider.Shelf) bool { return len(s.Prompts) == 2 })
			r.stop()

			opts.Lazy = true
			again := start(t, opts)
			if s := again.Shelf(); !filled(s) || len(s.Prompts) != 2 || again.Offer().Status.State != provider.Installed {
				t.Errorf("not kept for the next run: %+v, %s", s, again.Offer().Status.State)
			}
		})
	}
}

func TestAServerWhoseResourcesAreNotAskedForHasNone(t *testing.T) {
	r := start(t, mcpclient.Options{URL: serve(t, streamableHandler(t, newLibrary(mcp.ServerOptions{}), nil)).URL})
	r.ready()
	if r.Shelf() != nil {
		t.Error("it has a shelf")
	}
}

func TestSubscriptionsAreAskedForOnceAndOutliveTheSession(t *testing.T) {
	asked := make(chan string, 10)
	server := newLibrary(mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}, SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
		asked <- r.Params.URI
		return nil
	}})
	r := start(t, mcpclient.Options{URL: serve(t, streamableHandler(t, server, nil)).URL, Resources: true})
	r.ready()
	const uri = "note://a?x=1#y"
	updates := make(chan string, 10)
	subscribe := func(name string) func() {
		cancel, err := r.Subscribe(t.Context(), uri, func() {
			select {
			case updates <- name:
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return cancel
	}
	first, second := subscribe("first"), subscribe("second")
	touch := func(want ...string) {
		t.Helper()
		got := map[string]bool{}
		tick := time.NewTicker(50 * time.Millisecond) // the server notes a subscription after it has answered
		defer tick.Stop()
		for deadline := time.After(patience); len(got) < len(want); {
			if err := server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			select {
			case name := <-updates:
				got[name] = true
			case <-tick.C:
			case <-deadline:
				t.Fatalf("waited in vain for %v; told: %v", want, got)
			}
		}
		for _, name := range want {
			if !got[name] {
				t.Errorf("%s was not told, but %v", name, got)
			}
		}
		for len(updates) > 0 {
			<-updates
		}
	}
	touch("first", "second")
	<-asked
	if len(asked) > 0 {
		t.Error("the server was asked twice")
	}
	first()
	touch("second")
	for session := range server.Sessions() {
		session.Close() // the server forgets the session, and with it the subscription
	}
	// A call that meets the session while it ends may end with it; the next one makes a new session.
	for deadline := time.Now().Add(patience); ; {
		if _, err := r.call("echo", `{}`); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the new session was not asked")
	}
	touch("second")
	second()
	second() // twice does no harm
}

// A server of 2026-07-28 keeps nothing of a call that waits for an answer: another process goes on with it.
func TestACallThatAsksGoesOnAfterTheServerWasStartedAnew(t *testing.T) {
	r := start(t, mcpclient.Options{Command: []string{self(t)}, Env: role("sdk"), Parallel: true})
	r.ready()
	asked := 0
	host := &provider.Host{OnAsk: func(context.Context, provider.Question) (provider.Answer, error) {
		asked++
		pid := r.Offer().Status.PID
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		r.await("the server to be gone", func(o *provider.Offer) bool { return o.Status.PID != pid })
		return provider.Answer{Action: "accept", Content: json.RawMessage(`{"n":1}`)}, nil
	}}
	got := r.text("ask", `{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`, host)
	if got != "accept map[n:1] kept" || asked != 1 {
		t.Errorf("got %q after %d questions", got, asked)
	}
}

func TestAServerIsReplacedAtTheEndOfItsLifeBetweenCalls(t *testing.T) {
	starts := t.TempDir() + "/starts"
	o := fault(t, "STARTS="+starts)
	o.MaxLifetime = 300 * time.Millisecond
	r := start(t, o)
	r.ready()
	pid := r.Offer().Status.PID
	r.await("another process", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && o.Status.PID != pid })
	r.alive()
	if s := r.Offer().Status; s.Restarts != 0 {
		t.Errorf("a planned restart counts as a failure: %+v", s)
	}
	if n := lines(t, starts); n < 2 {
		t.Errorf("%d starts", n)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the old process is still there: %v", err)
	}
}

func TestAProbeSaysWhatWorksAndWhatDoesNot(t *testing.T) {
	library := serve(t, streamableHandler(t, newLibrary(mcp.ServerOptions{}), &mcp.StreamableHTTPOptions{Stateless: true})).URL
	dies, silent := fault(t, "FAULT_AT=initialize", "FAULT=die"), fault(t, "FAULT_AT=list", "FAULT=silent")
	silent.ConnectTimeout = 500 * time.Millisecond
	for name, tt := range map[string]struct {
		opts mcpclient.Options
		last string // step
		text string // of its error
	}{
		"all is well":             {mcpclient.Options{URL: library, Resources: true, Prompts: true}, "resources and prompts", ""},
		"no such program":         {mcpclient.Options{Command: []string{"no-such-program"}}, "start", "not found in PATH"},
		"nobody listens":          {mcpclient.Options{URL: "http://127.0.0.1:9/"}, "handshake", "refused"},
		"it dies":                 {dies, "handshake", "cannot open the database"},
		"it never lists anything": {silent, "tools/list", "connect_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.opts.Name, tt.opts.StopGrace = "kb", 200*time.Millisecond
			report, err := mcpclient.Probe(t.Context(), &tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			last := report.Steps[len(report.Steps)-1]
			if last.Name != tt.last || (last.Err == nil) != (tt.text == "") || last.Err != nil && !strings.Contains(last.Err.Error(), tt.text) {
				t.Errorf("step %s: %v", last.Name, last.Err)
			}
			if tt.text == "" && (len(report.Tools) != 5 || report.Resources != 1 || report.Prompts != 1 || report.Protocol != "2026-07-28") {
				t.Errorf("%+v", report)
			}
		})
	}
}
