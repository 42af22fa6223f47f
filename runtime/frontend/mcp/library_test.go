package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// library is a provider with resources and prompts that tells what it was asked.
type library struct {
	*providertest.Fake
	shelf  atomic.Pointer[provider.Shelf]
	answer json.RawMessage // to resources/read; nil for one that tells the URI
	broken error           // of every request

	mu      sync.Mutex
	fetched []string
	watch   map[string]func()
}

func newLibrary(name, space string, uris ...string) *library {
	l := &library{Fake: providertest.New(name, providertest.Echo("mcp__"+name+"__echo")), watch: map[string]func(){}}
	l.Who.Source = tool.SourceMCP
	l.stock(space, uris...)
	return l
}

func (l *library) stock(space string, uris ...string) {
	s := &provider.Shelf{Namespace: space}
	for _, uri := range uris {
		s.Resources = append(s.Resources, provider.Item{Name: space + uri, Own: uri, Raw: fmt.Appendf(nil, `{"uri":%q,"name":"r","x-own":12345678901234567890}`, space+uri)})
	}
	s.Templates = []provider.Item{{Name: space + "tmpl://{id}", Own: "tmpl://{id}", Raw: fmt.Appendf(nil, `{"uriTemplate":%q,"name":"t"}`, space+"tmpl://{id}")}}
	prompt := "mcp__" + l.Who.Name + "__greet"
	s.Prompts = []provider.Item{{Name: prompt, Own: "greet", Raw: fmt.Appendf(nil, `{"name":%q}`, prompt)}}
	l.shelf.Store(s)
}

func (l *library) Shelf() *provider.Shelf { return l.shelf.Load() }

func (l *library) Fetch(_ context.Context, f *provider.Fetch) (json.RawMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetched = append(l.fetched, fmt.Sprintf("%s %s %s %s", f.Method, f.Name, f.Namespace, f.Params))
	if l.broken != nil {
		return nil, l.broken
	}
	switch f.Method {
	case provider.ReadResource:
		if l.answer != nil {
			return l.answer, nil
		}
		if f.Name == "gone://x" {
			return nil, &provider.Refusal{Code: -32002, Message: "gone", Data: json.RawMessage(`{"why":"moved"}`)}
		}
		return fmt.Appendf(nil, `{"contents":[{"uri":%q,"text":"t"}]}`, f.Namespace+f.Name), nil
	case provider.GetPrompt:
		return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`), nil
	default:
		return json.RawMessage(`{"completion":{"values":["paris"]}}`), nil
	}
}

func (l *library) Subscribe(_ context.Context, uri string, updated func()) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetched = append(l.fetched, "resources/subscribe "+uri)
	l.watch[uri] = updated
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watch, uri)
	}, nil
}

func (l *library) asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.fetched
	l.fetched = nil
	return list
}

func TestResourcesAndPromptsOfSeveralServers(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			a, b := newLibrary("a", "mcp://a/", "file:///x", "file:///a-only"), newLibrary("b", "mcp://b/", "file:///x")
			e := serve(t, a, b)
			s := e.connect(t, version, nil)
			listed, err := s.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var uris []string
			for _, r := range listed.Resources {
				uris = append(uris, r.URI)
			}
			if diff := cmp.Diff([]string{"mcp://a/file:///x", "mcp://a/file:///a-only", "mcp://b/file:///x"}, uris); diff != "" {
				t.Errorf("resources: %s", diff)
			}
			prompts, err := s.ListPrompts(t.Context(), nil)
			if err != nil || len(prompts.Prompts) != 2 || prompts.Prompts[1].Name != "mcp__b__greet" {
				t.Errorf("prompts: %+v %v", prompts, err)
			}
			for asked, want := range map[string]string{
				"mcp://b/file:///x":     "resources/read file:///x mcp://b/ ",
				"mcp://b/anything://at": "resources/read anything://at mcp://b/ ",
				"file:///a-only":        "resources/read file:///a-only  ",
			} {
				r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: asked})
				if err != nil || len(r.Contents) != 1 || r.Contents[0].URI != asked {
					t.Errorf("%s: %+v %v", asked, r, err)
				}
				if got := append(a.asked(), b.asked()...); len(got) != 1 || got[0][:len(want)] != want {
					t.Errorf("%s became %q", asked, got)
				}
			}
			for _, unknown := range []string{"file:///x" /* whose? */, "mcp://c/file:///x", "tmpl://1"} {
				if r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: unknown}); err == nil {
					t.Errorf("%s was read: %+v", unknown, r)
				}
			}
			if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "mcp__b__greet", Arguments: map[string]string{"who": "Ada"}}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{`prompts/get greet mcp://b/ {"arguments":{"who":"Ada"},"name":"greet"}`}, b.asked()); diff != "" {
				t.Errorf("a prompt: %s", diff)
			}
			c, err := s.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "mcp://a/tmpl://{id}"}, Argument: sdk.CompleteParamsArgument{Name: "id", Value: "p"}})
			if err != nil || len(c.Completion.Values) != 1 || c.Completion.Values[0] != "paris" {
				t.Errorf("a completion: %+v %v", c, err)
			}
		})
	}
}

func TestAServersRefusalReachesTheClientAsItIs(t *testing.T) {
	e := serve(t, newLibrary("a", ""))
	_, err := e.connect(t, older, nil).ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "gone://x"})
	if err == nil || err.Error() != `calling "resources/read": gone` {
		t.Errorf("got %v", err)
	}
}

func TestListsThatChangeAreTold(t *testing.T) {
	for name, version := range map[string]string{"with sessions (2025-11-25)": older} {
		t.Run(name, func(t *testing.T) {
			l := newLibrary("a", "", "file:///x")
			e := serve(t, l)
			changed := make(chan struct{}, 10)
			s := e.connect(t, version, &sdk.ClientOptions{ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { changed <- struct{}{} }})
			l.stock("", "file:///x", "file:///y")
			e.server.Refresh()
			select {
			case <-changed:
			case <-time.After(10 * time.Second):
				t.Fatal("nobody was told")
			}
			if r, err := s.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 2 {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestASubscriptionIsTheSessionsAndEndsWithIt(t *testing.T) {
	l := newLibrary("a", "mcp://a/", "file:///x")
	e := serve(t, l)
	updated := make(chan string, 10)
	opts := &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI }}
	s := e.connect(t, older, opts)
	const uri = "mcp://a/file:///x"
	if err := s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	watcher := func() func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.watch["file:///x"]
	}
	watcher()()
	select {
	case got := <-updated:
		if got != uri {
			t.Errorf("told of %s", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the client was not told")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := e.connect(t, older, nil)
	if err := other.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "mcp://a/other://y"}); err != nil {
		t.Fatal(err)
	}
	if watcher() != nil {
		t.Error("a subscription outlives its only session")
	}
}

func TestAnAgentThatMayNotUseAServerSeesNothingOfIt(t *testing.T) {
	for name, tt := range map[string]struct {
		granted, exclude []string
		sees             bool
	}{
		"everything":                      {nil, nil, true},
		"the server":                      {[]string{"mcp:a"}, nil, true},
		"another server":                  {[]string{"mcp:b"}, nil, false},
		"the server, but not its tools":   {[]string{"mcp:a"}, []string{"mcp__a__*"}, false},
		"all but its resources":           {nil, []string{"mcp__a__resources"}, false},
		"all but its only tool":           {nil, []string{"mcp__a__echo"}, false},
		"all servers, but those excluded": {nil, []string{"source:mcp"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, newLibrary("a", "", "file:///x"))
			e.Agents.Restrict(t, "desk", tt.granted, tt.exclude)
			s := e.connect(t, older, nil)
			r, err := s.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, read := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///x"})
			_, got := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "mcp__a__greet"})
			if sees := len(r.Resources) == 1; sees != tt.sees || (read == nil) != tt.sees || (got == nil) != tt.sees {
				t.Errorf("lists %d, reads %v, prompts %v", len(r.Resources), read, got)
			}
		})
	}
}
