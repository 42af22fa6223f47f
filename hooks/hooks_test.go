package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/hooks"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is a plugin that answers the same to every event.
type says string

func (s says) Intercept(context.Context, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(s), nil
}

// does is a plugin with behaviour.
type does func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error)

func (d does) Intercept(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	return d(ctx, payload)
}

func plugin(t *testing.T, p hooks.Interceptor) hooks.Runner {
	t.Helper()
	r, err := hooks.NewPlugin(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newChain(t *testing.T, log *slog.Logger, list ...hooks.Hook) *hooks.Chain {
	t.Helper()
	c, err := hooks.New(named(list), &hooks.Options{Dir: "/srv", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pre makes a chain of pre hooks that answer the texts given.
func pre(t *testing.T, answers ...string) *hooks.Chain {
	t.Helper()
	var list []hooks.Hook
	for _, a := range answers {
		list = append(list, hooks.Hook{On: hooks.PreCall, Runner: plugin(t, says(a))})
	}
	return newChain(t, nil, list...)
}

func call() *hooks.Call {
	yes := true
	return &hooks.Call{
		Call:       &tool.Call{ID: "c1", Agent: "ann", Session: "s1", Tool: "wipe", Arguments: json.RawMessage(`{"a":1,"b":"x"}`)},
		Definition: &tool.Definition{Name: "wipe", Toolset: "disks", Source: tool.SourceMCP, SourceName: "lab", Annotations: tool.Annotations{Destructive: &yes}},
	}
}

func code(err *tool.Error) tool.Code {
	if err == nil {
		return ""
	}
	return err.Code
}

func TestWhatHooksSayTogether(t *testing.T) {
	const (
		allow  = `{"action":"allow"}`
		block  = `{"action":"block","message":"no"}`
		ask    = `{"action":"ask","message":"sure?","rule_key":"k"}`
		modify = `{"action":"modify","args":{"b":"y","c":[1]}}`
		more   = `{"action":"modify","args":{"c":2,"d":null}}`
	)
	for name, tt := range map[string]struct {
		answers []string
		want    hooks.Verdict
	}{
		"nothing allows":                   {[]string{"", "{}", " \n", `{"other":1}`}, hooks.Verdict{Action: "allow"}},
		"a block after an allow":           {[]string{allow, block}, hooks.Verdict{Action: "block", Hook: "b", Message: "no"}},
		"a block before an allow":          {[]string{block, allow}, hooks.Verdict{Action: "block", Hook: "a", Message: "no"}},
		"a block after an ask":             {[]string{ask, block}, hooks.Verdict{Action: "block", Hook: "b", Message: "no"}},
		"a block before an ask":            {[]string{block, ask}, hooks.Verdict{Action: "block", Hook: "a", Message: "no"}},
		"an ask beats an allow":            {[]string{allow, ask, allow}, hooks.Verdict{Action: "ask", Hook: "b", Message: "sure?", RuleKey: "k"}},
		"the first ask counts":             {[]string{ask, `{"action":"ask","message":"other"}`}, hooks.Verdict{Action: "ask", Hook: "a", Message: "sure?", RuleKey: "k"}},
		"changes accumulate":               {[]string{modify, more}, hooks.Verdict{Action: "allow", Args: json.RawMessage(`{"a":1,"b":"y","c":2,"d":null}`)}},
		"changes and an ask":               {[]string{ask, modify}, hooks.Verdict{Action: "ask", Hook: "a", Message: "sure?", RuleKey: "k", Args: json.RawMessage(`{"a":1,"b":"y","c":[1]}`)}},
		"a change of nothing":              {[]string{`{"action":"modify"}`}, hooks.Verdict{Action: "allow"}},
		"arguments of an allow are unused": {[]string{`{"action":"allow","args":{"a":2}}`}, hooks.Verdict{Action: "allow"}},
		"the older shape":                  {[]string{`{"decision":"block","reason":"older"}`}, hooks.Verdict{Action: "block", Hook: "a", Message: "older"}},
		"the older shape of an allow":      {[]string{`{"decision":"approve"}`}, hooks.Verdict{Action: "allow"}},
		"the stricter of both shapes":      {[]string{`{"action":"allow","decision":"block"}`}, hooks.Verdict{Action: "block", Hook: "a", Message: `the hook "a" gave no reason`}},
		"big numbers stay as they are":     {[]string{`{"action":"modify","args":{"a":12345678901234567890.10}}`}, hooks.Verdict{Action: "allow", Args: json.RawMessage(`{"a":12345678901234567890.10,"b":"x"}`)}},
		"markup stays as it is":            {[]string{`{"action":"modify","args":{"b":"<&>"}}`}, hooks.Verdict{Action: "allow", Args: json.RawMessage(`{"a":1,"b":"<&>"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := pre(t, tt.answers...).Before(t.Context(), call())
			if diff := cmp.Diff(tt.want, v); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestNonsenseFollowsOnError(t *testing.T) {
	for name, answer := range map[string]string{
		"half a JSON":           `{"action":"al`,
		"no object":             `"allow"`,
		"a list":                `[]`,
		"null":                  `null`,
		"words":                 `looks fine to me`,
		"two objects":           `{}{}`,
		"an unknown action":     `{"action":"permit"}`,
		"an unknown decision":   `{"decision":"perhaps"}`,
		"arguments as a list":   `{"action":"modify","args":[1]}`,
		"an action of a number": `{"action":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			v, err := pre(t, answer).Before(t.Context(), call())
			if code(err) != tool.HookFailed || v.Action != "" || !strings.Contains(err.Message, `hook "a"`) || err.Detail == "" {
				t.Errorf("the default lets it through: %+v, %v", v, err)
			}
			c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, OnError: hooks.FailAllow, Runner: plugin(t, says(answer))})
			if v, err := c.Before(t.Context(), call()); err != nil || v.Action != hooks.Allow {
				t.Errorf("on_error allow: %+v, %v", v, err)
			}
		})
	}
}

func TestAFailingHookDoesNotHideABlock(t *testing.T) {
	c := newChain(t, nil,
		hooks.Hook{On: hooks.PreCall, OnError: hooks.FailAllow, Runner: plugin(t, does(func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("oh") }))},
		hooks.Hook{On: hooks.PreCall, Runner: plugin(t, says(`{"action":"block"}`))})
	if v, err := c.Before(t.Context(), call()); err != nil || v.Action != hooks.Block {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestThePayload(t *testing.T) {
	var got []string
	var mu sync.Mutex
	spy := does(func(_ context.Context, p json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(p))
		return nil, nil
	})
	var list []hooks.Hook
	for _, e := range []hooks.Event{hooks.PreCall, hooks.PostCall, hooks.TransformResult, hooks.ApprovalRequested, hooks.ApprovalDecided, hooks.ProviderState} {
		list = append(list, hooks.Hook{On: e, Runner: plugin(t, spy)})
	}
	c, err := hooks.New(named(list), &hooks.Options{Dir: "/srv"})
	if err != nil {
		t.Fatal(err)
	}
	const common = `"call_id":"c1","tool_name":"wipe","toolset":"disks","source":"mcp","source_name":"lab","args":{"a":1,"b":"x"},"agent":"ann","session_id":"s1","annotations":{"destructive":true},"cwd":"/srv"`
	steps := []struct {
		act  func()
		want []string
	}{
		{func() { c.Before(t.Context(), call()) }, []string{`{"event":"pre_call",` + common + `}`}}, //nolint:errcheck // the payload is looked at
		{func() {
			c.After(t.Context(), call(), hooks.Outcome{Result: tool.TextResult("done"), Duration: 1500 * time.Millisecond})
		}, []string{
			`{"event":"post_call",` + common + `,"result":{"content":[{"type":"text","text":"done"}]},"duration_ms":1500,"status":"ok"}`,
			`{"event":"transform_result",` + common + `,"result":{"content":[{"type":"text","text":"done"}]},"duration_ms":1500,"status":"ok"}`,
		}},
		{func() {
			c.After(t.Context(), call(), hooks.Outcome{Err: tool.Errorf(tool.Timeout, "late")})
		}, []string{`{"event":"post_call",` + common + `,"duration_ms":0,"status":"timeout","error":{"code":"timeout","error":"late"}}`}},
		{func() {
			c.ApprovalAsked(call(), &hooks.Approval{ID: "p", Rule: "r", Choices: []string{"once", "deny"}})
			c.ApprovalAnswered(call(), &hooks.Approval{ID: "p", Choice: "once", By: "ops"})
			c.ProviderChanged(&hooks.Provider{Name: "lab", Source: tool.SourceMCP, State: "backoff", Reason: "gone"})
			c.Close()
		}, []string{
			`{"event":"approval_decided",` + common + `,"approval":{"id":"p","choice":"once","by":"ops"}}`,
			`{"event":"approval_requested",` + common + `,"approval":{"id":"p","rule":"r","choices":["once","deny"]}}`,
			`{"event":"provider_state","source":"mcp","source_name":"lab","cwd":"/srv","provider":{"name":"lab","source":"mcp","state":"backoff","reason":"gone"}}`,
		}},
	}
	for _, s := range steps {
		got = nil
		s.act()
		slices.Sort(got)
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	c.ProviderChanged(&hooks.Provider{}) // after Close: nothing, and no panic
}

func TestOnlyMatchingHooksRun(t *testing.T) {
	var n atomic.Int32
	h := hooks.Hook{On: hooks.PreCall, Matches: func(d *tool.Definition) bool { return d.Name == "wipe" },
		Runner: plugin(t, does(func(context.Context, json.RawMessage) (json.RawMessage, error) { n.Add(1); return nil, nil }))}
	c := newChain(t, nil, h)
	other := call()
	other.Definition = &tool.Definition{Name: "read"}
	for _, one := range []*hooks.Call{call(), other} {
		if _, err := c.Before(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if n.Load() != 1 {
		t.Errorf("it ran %d times", n.Load())
	}
}

func TestResultsAreTransformedByOneAfterAnother(t *testing.T) {
	upper := does(func(_ context.Context, p json.RawMessage) (json.RawMessage, error) {
		var e struct{ Result *tool.Result }
		if err := json.Unmarshal(p, &e); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"action": "modify", "result": strings.ToUpper(e.Result.Text())})
	})
	for name, tt := range map[string]struct {
		runners []hooks.Interceptor
		onError hooks.OnError
		want    *tool.Result
		code    tool.Code
	}{
		"a text":                      {[]hooks.Interceptor{upper}, "", tool.TextResult("DONE"), ""},
		"each sees what was made":     {[]hooks.Interceptor{says(`{"action":"modify","result":"more"}`), upper}, "", tool.TextResult("MORE"), ""},
		"a result object":             {[]hooks.Interceptor{says(`{"action":"modify","result":{"content":[{"type":"text","text":"x"}],"isError":true}}`)}, "", &tool.Result{Content: []tool.Content{tool.Text("x")}, IsError: true}, ""},
		"some keys of the result":     {[]hooks.Interceptor{says(`{"action":"modify","args":{"isError":true}}`)}, "", &tool.Result{Content: []tool.Content{tool.Text("done")}, IsError: true}, ""},
		"left as it is":               {[]hooks.Interceptor{says(`{"action":"allow"}`), says(`{"action":"modify"}`)}, "", tool.TextResult("done"), ""},
		"withheld":                    {[]hooks.Interceptor{says(`{"action":"block","message":"secret"}`), upper}, "", nil, tool.BlockedByHook},
		"nonsense leaves it as it is": {[]hooks.Interceptor{says(`{"action":"modify","result":[1]}`), says(`{"action":"modify","result":{"content":[1]}}`)}, "", tool.TextResult("done"), ""},
		"nonsense withholds it":       {[]hooks.Interceptor{says(`{`)}, hooks.FailBlock, nil, tool.HookFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var list []hooks.Hook
			for _, r := range tt.runners {
				list = append(list, hooks.Hook{On: hooks.TransformResult, OnError: tt.onError, Runner: plugin(t, r)})
			}
			out := newChain(t, nil, list...).After(t.Context(), call(), hooks.Outcome{Result: tool.TextResult("done")})
			if diff := cmp.Diff(tt.want, out.Result); diff != "" || code(out.Err) != tt.code {
				t.Errorf("%v (-want +got):\n%s", out.Err, diff)
			}
		})
	}
}

func TestPostHooksRunOnceEachAndChangeNothing(t *testing.T) {
	var n atomic.Int32
	count := does(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		n.Add(1)
		return json.RawMessage(`{"action":"block","args":{"a":2}}`), nil
	})
	c := newChain(t, nil, hooks.Hook{On: hooks.PostCall, Runner: plugin(t, count)}, hooks.Hook{On: hooks.PostCall, Runner: plugin(t, count)})
	for i, out := range []hooks.Outcome{{Result: tool.TextResult("done")}, {Err: tool.Errorf(tool.ToolFailed, "x")}} {
		got := c.After(t.Context(), call(), out)
		if n.Load() != int32(2*i+2) || got.Result != out.Result || got.Err != out.Err {
			t.Errorf("ran %d times, %+v", n.Load(), got)
		}
	}
	strict := newChain(t, nil, hooks.Hook{On: hooks.PostCall, OnError: hooks.FailBlock, Runner: plugin(t, says("{"))})
	if got := strict.After(t.Context(), call(), hooks.Outcome{Result: tool.TextResult("done")}); code(got.Err) != tool.HookFailed || got.Result != nil {
		t.Errorf("a post hook that had to run: %+v", got)
	}
}

// hangs does not end before its time is over, and then at once if it is polite.
func hangs(polite bool, release <-chan struct{}) does {
	return func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		if polite {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		<-release
		return nil, nil
	}
}

func TestAHungHookCostsItsTimeOnceAMinute(t *testing.T) {
	for name, polite := range map[string]bool{"that ends when told to": true, "that does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Timeout: 2 * time.Second, Runner: plugin(t, hangs(polite, release))})
				defer func() { close(release); synctest.Wait() }()
				took := func() time.Duration {
					began := time.Now()
					if _, err := c.Before(t.Context(), call()); code(err) != tool.HookFailed {
						t.Errorf("it lets the call through: %v", err)
					}
					return time.Since(began).Truncate(time.Second)
				}
				for i, want := range []time.Duration{2 * time.Second, 0, 0} {
					if got := took(); got != want {
						t.Errorf("run %d took %s, want %s", i, got, want)
					}
				}
				time.Sleep(time.Minute)
				if got := took(); got != 2*time.Second {
					t.Errorf("it is not tried again after a minute: %s", got)
				}
			})
		})
	}
}

func TestAtMostThreeRunsOfAHookAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		release := make(chan struct{})
		c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Timeout: time.Second, OnError: hooks.FailAllow, Runner: plugin(t, does(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			started.Add(1)
			<-release
			return nil, nil
		}))})
		for range 10 {
			if _, err := c.Before(t.Context(), call()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
		}
		if n := started.Load(); n != 3 {
			t.Errorf("%d runs are late", n)
		}
		close(release)
		synctest.Wait()
		if v, err := c.Before(t.Context(), call()); err != nil || v.Action != hooks.Allow || started.Load() != 4 {
			t.Errorf("it does not come back: %v, %v, %d", v, err, started.Load())
		}
	})
}

func TestTwoRunsAtOnceAreTwoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, nil, hooks.Hook{On: hooks.PreCall, Timeout: 2 * time.Second, Runner: plugin(t, does(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			select {
			case <-time.After(1900 * time.Millisecond):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}))})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if _, err := c.Before(t.Context(), call()); err != nil {
					t.Errorf("a false time-out: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

func TestACallerWhoGoesIsNotTheHooksFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newChain(t, slog.New(slog.NewTextHandler(&log, nil)), hooks.Hook{On: hooks.PreCall, Runner: plugin(t, hangs(true, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Before(ctx, call()); code(err) != tool.Timeout || log.Len() > 0 {
			t.Errorf("%v, log: %s", err, log.String())
		}
		ctx2, cancel2 := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel2)
		if _, err := c.Before(ctx2, call()); code(err) != tool.Cancelled {
			t.Errorf("it is skipped, although it was not late: %v", err)
		}
	})
}

func TestABadHookIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var broken atomic.Bool
		broken.Store(true)
		c := newChain(t, slog.New(slog.NewTextHandler(&log, nil)), hooks.Hook{On: hooks.PreCall, Runner: plugin(t, does(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			if broken.Load() {
				return nil, errors.New("bad signature")
			}
			return nil, nil
		}))})
		run := func(n int) {
			for range n {
				c.Before(t.Context(), call()) //nolint:errcheck // the log is looked at
			}
		}
		run(1000)
		broken.Store(false)
		run(10)
		for range 50 { // it flaps
			broken.Store(!broken.Load())
			run(1)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "bad signature") {
			t.Errorf("%d warnings:\n%s", n, log.String())
		}
		time.Sleep(time.Hour)
		broken.Store(false)
		run(1)
		broken.Store(true)
		run(1)
		if n := strings.Count(log.String(), "level=WARN"); n != 2 {
			t.Errorf("an hour later: %d warnings:\n%s", n, log.String())
		}
	})
}

func TestObserversThatNobodyWaitsForAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		c := newChain(t, nil, hooks.Hook{On: hooks.ProviderState, Timeout: time.Minute, Runner: plugin(t, does(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			n.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}))})
		for range 1000 {
			c.ProviderChanged(&hooks.Provider{Name: "x"})
		}
		synctest.Wait()
		if n.Load() != 64 {
			t.Errorf("%d run", n.Load())
		}
		c.Close()
	})
}

func TestABadHookIsRefusedWhenItIsMade(t *testing.T) {
	ok := plugin(t, says(""))
	for name, h := range map[string]hooks.Hook{
		"no name":          {On: hooks.PreCall, Runner: ok},
		"no event":         {Name: "a", Runner: ok},
		"an unknown event": {Name: "a", On: "later", Runner: ok},
		"nothing to run":   {Name: "a", On: hooks.PreCall},
		"a negative time":  {Name: "a", On: hooks.PreCall, Runner: ok, Timeout: -1},
		"another on_error": {Name: "a", On: hooks.PreCall, Runner: ok, OnError: "retry"},
	} {
		if _, err := hooks.New([]hooks.Hook{h}, nil); err == nil || !strings.HasPrefix(err.Error(), "hook ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheAnswerOfAPluginIsBounded(t *testing.T) {
	for size, ok := range map[int]bool{hooks.MaxAnswer: true, hooks.MaxAnswer + 1: false} {
		frame := `{"message":"","x":""}`
		answer := strings.Replace(frame, `"x":"`, `"x":"`+strings.Repeat("y", size-len(frame)), 1)
		r := plugin(t, does(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(answer), nil }))
		if _, err := r.Run(t.Context(), hooks.PreCall, nil); (err == nil) != ok {
			t.Errorf("an answer of %d bytes: %v", size, err)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{`{"action":"modify","args":{"a":1},"result":"x"}`, `{"decision":"block","reason":"r"}`, `{`, ``, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := hooks.ParseAnswer(raw)
		if err == nil && a.Action != hooks.Allow && a.Action != hooks.Modify && a.Action != hooks.Ask && a.Action != hooks.Block {
			t.Errorf("%q gave the action %q", raw, a.Action)
		}
		if err != nil && a.Action == hooks.Allow {
			t.Errorf("%q fails and allows", raw)
		}
	})
}

func named(list []hooks.Hook) []hooks.Hook {
	for i := range list {
		list[i].Name = string(rune('a' + i))
	}
	return list
}
