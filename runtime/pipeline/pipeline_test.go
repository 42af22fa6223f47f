package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestEveryCallPassesTheStagesInOrder(t *testing.T) {
	s := &trace{decision: pipeline.Decision{Action: pipeline.Ask, Rule: "r (c.hcl:1)"}, answer: func(*pipeline.Entry) pipeline.Answer {
		return pipeline.Answer{ID: "A1", By: "ann"}
	}}
	k := newKB()
	out := traced(t, s).Call(t.Context(), k.request("search", `{"n":"1"}`))
	if out.Err != nil || out.Result.Text() != "found" {
		t.Fatalf("%+v", out)
	}
	want := []string{
		`admit search {"n":"1"}`, `before search {"n":1}`, `decide search {"n":1}`, `ask search {"n":1}`, `redeem search {"n":1}`,
		`started search {"n":1}`, `after search {"n":1}`, `fit search {"n":1}`, `leave search {"n":1}`, `count search {"n":1}`, `finished search {"n":1}`,
	}
	if diff := cmp.Diff(want, s.steps); diff != "" {
		t.Error(diff)
	}
	last := s.records[1]
	if last.Outcome != tool.OutcomeOK || last.Rule != "r (c.hcl:1)" || last.Approval != "A1" || last.By != "ann" || last.Result == nil || last.Source != tool.SourceMCP {
		t.Errorf("%+v", last)
	}
	if diff := cmp.Diff([]string{"arguments.n"}, last.Coerced); diff != "" || len(out.Coerced) != 1 {
		t.Error(diff, out.Coerced)
	}
	if out.Call.ID == "" || out.Call.ID != last.CallID || string(out.Call.Arguments) != `{"n":1}` {
		t.Errorf("%+v", out.Call)
	}
}

// codeOf is the code of an outcome's error, "" if there is none.
func codeOf(o pipeline.Outcome) tool.Code {
	if o.Err == nil {
		return ""
	}
	return o.Err.Code
}

func TestTheOrderIsDataForDoctor(t *testing.T) {
	list := pipeline.Stages()
	if len(list) < 12 || !strings.HasPrefix(list[0], "scope: ") || !strings.HasPrefix(list[len(list)-1], "audit finished: ") {
		t.Errorf("%q", list)
	}
}

func TestAProviderThatStopsForGoodIsRefusedWithAReason(t *testing.T) {
	for _, state := range []provider.State{provider.Stopped, provider.Disabled} {
		for _, reason := range []string{"", "switched off in the configuration"} {
			k := newKB()
			k.offer.Status = provider.Status{State: state, Reason: reason}
			out := traced(t, &trace{}).Call(t.Context(), k.request("search", "{}"))
			if codeOf(out) != tool.ProviderDown || !strings.Contains(out.Err.Message, reason) || strings.HasSuffix(out.Err.Message, ": ") {
				t.Errorf("%s, %q: %v", state, reason, out.Err)
			}
		}
	}
}

// A call that a plugin makes within a call may be what the plugin's end waits for.
func TestANestedCallDoesNotWaitForAProviderThatIsStopped(t *testing.T) {
	for state, want := range map[provider.State]tool.Code{provider.Draining: tool.ProviderStarting, provider.Starting: "", provider.Ready: ""} {
		k := newKB()
		k.offer.Status = provider.Status{State: state, Reason: "restarted by the operator"}
		r := k.request("search", "{}")
		r.Call.Depth = 1
		out := traced(t, &trace{}).Call(t.Context(), r)
		var got tool.Code
		if out.Err != nil {
			got = out.Err.Code
		}
		if got != want {
			t.Errorf("%s: %v", state, out.Err)
		}
	}
}

// A provider that is about to be ready makes a call wait: that is its own to do.
func TestAProviderThatStartsAnewGetsItsCalls(t *testing.T) {
	for _, state := range []provider.State{provider.Ready, provider.Installed, provider.Starting, provider.Draining, provider.Backoff} {
		k := newKB()
		k.offer.Status = provider.Status{State: state, Reason: "nobody has used it for 2s"}
		if out := traced(t, &trace{}).Call(t.Context(), k.request("search", "{}")); out.Err != nil {
			t.Errorf("%s: %v", state, out.Err)
		}
	}
}

// TestARefusedCallDoesNotRun goes through everything that may refuse. A stage that joins joins here.
func TestARefusedCallDoesNotRun(t *testing.T) {
	no := func(c tool.Code) *tool.Error { return tool.Errorf(c, "no") }
	for name, tt := range map[string]struct {
		set     func(s *trace, k *kb)
		tool    string
		args    string
		code    tool.Code
		outcome tool.Outcome
		started bool // a start was tried
	}{
		"scope":                    {tool: "other", code: tool.UnknownTool, outcome: tool.OutcomeError},
		"guard":                    {set: func(s *trace, _ *kb) { s.admit = no(tool.RateLimited) }, code: tool.RateLimited, outcome: tool.OutcomeBlocked},
		"a provider that is down":  {set: func(_ *trace, k *kb) { k.offer.Status.State = provider.Stopped }, code: tool.ProviderDown, outcome: tool.OutcomeError},
		"a provider in quarantine": {set: func(_ *trace, k *kb) { k.offer.Status.State = provider.Quarantined }, code: tool.ProviderQuarantined, outcome: tool.OutcomeError},
		"a tool in quarantine":     {set: func(_ *trace, k *kb) { k.offer.Refused = map[string]string{"search": "changed"} }, code: tool.ProviderQuarantined, outcome: tool.OutcomeError},
		"a precondition": {set: func(_ *trace, k *kb) {
			k.offer.Unmet = map[string]string{"search": "KEY is not set"}
			k.check = func() error { return errors.New("KEY is not set") }
		}, code: tool.NotAvailable, outcome: tool.OutcomeError},
		"validation":                   {args: `{"n":"x"}`, code: tool.InvalidArguments, outcome: tool.OutcomeError},
		"a hook that blocks":           {set: func(s *trace, _ *kb) { s.verdict.Action = pipeline.Deny }, code: tool.BlockedByHook, outcome: tool.OutcomeBlocked},
		"a hook that fails":            {set: func(s *trace, _ *kb) { s.hookErr = no(tool.HookFailed) }, code: tool.HookFailed, outcome: tool.OutcomeBlocked},
		"a hook that breaks arguments": {set: func(s *trace, _ *kb) { s.verdict.Arguments = json.RawMessage(`{"n":[]}`) }, code: tool.InvalidArguments, outcome: tool.OutcomeError},
		"a rule":                       {set: func(s *trace, _ *kb) { s.decision.Action = pipeline.Deny }, code: tool.DeniedByRule, outcome: tool.OutcomeDenied},
		"a human": {set: func(s *trace, _ *kb) {
			s.decision.Action = pipeline.Ask
			s.answer = func(*pipeline.Entry) pipeline.Answer { return pipeline.Answer{Err: no(tool.ApprovalDenied)} }
		}, code: tool.ApprovalDenied, outcome: tool.OutcomeDenied},
		"a human whom a hook asked": {set: func(s *trace, _ *kb) {
			s.verdict.Action = pipeline.Ask
			s.answer = func(*pipeline.Entry) pipeline.Answer { return pipeline.Answer{Err: no(tool.ApprovalTimeout)} }
		}, code: tool.ApprovalTimeout, outcome: tool.OutcomeDenied},
		"an approval that is void": {set: func(s *trace, _ *kb) {
			s.decision.Action = pipeline.Ask
			s.answer = func(*pipeline.Entry) pipeline.Answer { return pipeline.Answer{ID: "A"} }
			s.redeem = no(tool.ApprovalVoid)
		}, code: tool.ApprovalVoid, outcome: tool.OutcomeDenied},
		"a provider that went meanwhile": {set: func(s *trace, k *kb) {
			s.decision.Action = pipeline.Ask
			s.answer = func(*pipeline.Entry) pipeline.Answer {
				k.offer.Status.State = provider.Stopped
				return pipeline.Answer{ID: "A"}
			}
		}, code: tool.ProviderDown, outcome: tool.OutcomeError},
		"a precondition that went": {set: func(s *trace, k *kb) {
			s.decision.Action = pipeline.Ask
			s.answer = func(*pipeline.Entry) pipeline.Answer {
				k.check = func() error { return errors.New("gone") }
				return pipeline.Answer{ID: "A"}
			}
		}, code: tool.NotAvailable, outcome: tool.OutcomeError},
		"a broker that loses an answer": {set: func(s *trace, _ *kb) {
			s.decision.Action = pipeline.Ask
			s.answer = func(*pipeline.Entry) pipeline.Answer { panic("lost") }
		}, code: tool.Internal, outcome: tool.OutcomeError},
		"an audit without a record": {set: func(s *trace, _ *kb) { s.startErr = errors.New("disk full") }, code: tool.AuditUnavailable, outcome: tool.OutcomeError, started: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := &trace{}, newKB()
			if tt.set != nil {
				tt.set(s, k)
			}
			if tt.tool == "" {
				tt.tool = "search"
			}
			out := traced(t, s).Call(t.Context(), k.request(tt.tool, tt.args))
			if codeOf(out) != tt.code || out.Result != nil {
				t.Errorf("got %v, %v", out.Err, out.Result)
			}
			if runs := k.ran(); len(runs) != 0 {
				t.Errorf("it ran: %q", runs)
			}
			want := []tool.RecordKind{tool.RecordFinished}
			if tt.started {
				want = []tool.RecordKind{tool.RecordStarted, tool.RecordFinished}
			}
			if diff := cmp.Diff(want, s.kinds()); diff != "" {
				t.Error(diff)
			}
			if last := s.records[len(s.records)-1]; last.Outcome != tt.outcome || last.Code != tt.code {
				t.Errorf("recorded as %s %s", last.Outcome, last.Code)
			}
			steps := strings.Join(s.steps, "\n")
			if strings.Contains(steps, "after ") || strings.Count(steps, "count ") != 1 {
				t.Errorf("a refused call has no post hooks and is counted once:\n%s", steps)
			}
		})
	}
}

func TestWithoutABrokerWhatNeedsAHumanIsRefused(t *testing.T) {
	s, k := &trace{decision: pipeline.Decision{Action: pipeline.Ask}}, newKB()
	out := newPipeline(t, &pipeline.Options{Rules: s}).Call(t.Context(), k.request("search", ``))
	if codeOf(out) != tool.NobodyAsked || len(k.ran()) != 0 {
		t.Errorf("got %v", out.Err)
	}
}

func TestARefusalByTheSchemaSaysHowToRepairTheCall(t *testing.T) {
	k := newKB()
	k.add("edit", `{"type":"object","properties":{"options":{"type":"object","properties":{"count":{"type":"integer"}}}},"required":["id"]}`)
	out := newPipeline(t, nil).Call(t.Context(), k.request("edit", `{"options":{"count":"many"}}`))
	raw, err := json.Marshal(out.Err)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"error": "edit was not run: arguments.id is required", "code": "invalid_arguments",
		"path": "arguments.id", "constraint": "required",
		"faults": []any{
			map[string]any{"path": "arguments.id", "constraint": "required", "detail": "is required"},
			map[string]any{"path": "arguments.options.count", "constraint": "type", "detail": "must be integer"},
		},
		"parameters": got["parameters"],
		"hint":       "Correct all arguments listed in faults, then call again once.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p, ok := got["parameters"].(map[string]any); !ok || p["required"] == nil {
		t.Errorf("the whole schema is missing: %s", raw)
	}
}

func TestHooksMayChangeArguments(t *testing.T) {
	s, k := &trace{verdict: pipeline.Verdict{Arguments: json.RawMessage(`{"n":"7"}`)}}, newKB()
	out := traced(t, s).Call(t.Context(), k.request("search", `{"n":1}`))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	if diff := cmp.Diff([]string{`{"n":7}`}, k.ran()); diff != "" {
		t.Error(diff)
	}
}

func TestTheGuardMayEndAStreamOfRefusals(t *testing.T) {
	s, k := &trace{counted: func(out *pipeline.Outcome) { out.Err = tool.Errorf(tool.LoopBlocked, "enough") }}, newKB()
	out := traced(t, s).Call(t.Context(), k.request("other", ``))
	if codeOf(out) != tool.LoopBlocked || s.records[0].Code != tool.LoopBlocked {
		t.Errorf("got %v", out.Err)
	}
}

func TestPostHooksRunOnceAlsoAfterAnError(t *testing.T) {
	s, k := &trace{}, newKB()
	k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) {
		return nil, tool.Errorf(tool.ToolFailed, "no luck")
	}
	s.after = func(out *pipeline.Outcome) { out.Notes = append(out.Notes, "seen "+string(out.Err.Code)) }
	out := traced(t, s).Call(t.Context(), k.request("search", ``))
	if diff := cmp.Diff([]string{"seen tool_failed"}, out.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestHowACallEnds(t *testing.T) {
	fail := func(err error) func(context.Context, *provider.Request) (*tool.Result, error) {
		return func(context.Context, *provider.Request) (*tool.Result, error) { return nil, err }
	}
	give := func(r *tool.Result) func(context.Context, *provider.Request) (*tool.Result, error) {
		return func(context.Context, *provider.Request) (*tool.Result, error) { return r, nil }
	}
	for name, tt := range map[string]struct {
		invoke  func(context.Context, *provider.Request) (*tool.Result, error)
		code    tool.Code
		outcome tool.Outcome
	}{
		"a tool that fails at its task":  {give(&tool.Result{Content: []tool.Content{tool.Text("x")}, IsError: true}), "", tool.OutcomeError},
		"a provider that died":           {fail(tool.Errorf(tool.OutcomeUnknown, "gone")), tool.OutcomeUnknown, tool.OutcomeLost},
		"a provider that is starting":    {fail(tool.Errorf(tool.ProviderStarting, "wait")), tool.ProviderStarting, tool.OutcomeError},
		"an error without a code":        {fail(errors.New("boom")), tool.Internal, tool.OutcomeError},
		"a panic":                        {func(context.Context, *provider.Request) (*tool.Result, error) { panic("boom") }, tool.Internal, tool.OutcomeError},
		"no result":                      {give(nil), tool.BadAnswer, tool.OutcomeError},
		"content that is no JSON":        {give(&tool.Result{Content: []tool.Content{tool.Content("{")}}), tool.BadAnswer, tool.OutcomeError},
		"content that is no object":      {give(&tool.Result{Content: []tool.Content{tool.Content(`"x"`)}}), tool.BadAnswer, tool.OutcomeError},
		"structured content that is bad": {give(&tool.Result{Structured: json.RawMessage("{")}), tool.BadAnswer, tool.OutcomeError},
		"a _meta that is no object":      {give(&tool.Result{Meta: json.RawMessage("[]")}), tool.BadAnswer, tool.OutcomeError},
		"a result over the limit":        {give(tool.TextResult(strings.Repeat("x", 2000))), tool.ResultTooLarge, tool.OutcomeError},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := &trace{}, newKB()
			k.invoke = tt.invoke
			p := newPipeline(t, &pipeline.Options{Audit: s, MaxResultBytes: 1000})
			out := p.Call(t.Context(), k.request("search", ``))
			if codeOf(out) != tt.code {
				t.Errorf("got %v", out.Err)
			}
			if (out.Err == nil) == (out.Result == nil) {
				t.Errorf("either a result or an error: %+v", out)
			}
			if last := s.records[1]; last.Outcome != tt.outcome || last.Code != tt.code {
				t.Errorf("recorded as %s %s", last.Outcome, last.Code)
			}
		})
	}
}

func TestADeadlineEndsACall(t *testing.T) {
	wait := func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, tt := range map[string]struct {
		own, all, caller, want time.Duration
		code                   tool.Code
	}{
		"60 s by default":               {0, 0, 0, time.Minute, tool.Timeout},
		"as the operator says":          {0, 5 * time.Second, 0, 5 * time.Second, tool.Timeout},
		"as the tool says":              {time.Second, 5 * time.Second, 0, time.Second, tool.Timeout},
		"a caller that gives up before": {0, 0, time.Second, time.Second, tool.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKB()
				k.invoke = wait
				k.tools["search"].Timeout = tt.own
				ctx := t.Context()
				if tt.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.caller)
					defer cancel()
				}
				start := time.Now()
				out := newPipeline(t, &pipeline.Options{Timeout: tt.all}).Call(ctx, k.request("search", ``))
				if codeOf(out) != tt.code || time.Since(start) != tt.want || out.Duration != tt.want {
					t.Errorf("%v after %v", out.Err, time.Since(start))
				}
			})
		})
	}
}

func TestAProvidersErrorIsBoundedAndMasked(t *testing.T) {
	k := newKB()
	long := tool.Errorf(tool.ToolFailed, "hunter22 %s", strings.Repeat("é", 5000))
	k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) { return nil, long }
	p := newPipeline(t, &pipeline.Options{Mask: func(s string) string { return strings.ReplaceAll(s, "hunter22", "[secret]") }})
	out := p.Call(t.Context(), k.request("search", ``))
	if n := utf8.RuneCountInString(out.Err.Message); n != 2048 || !strings.HasPrefix(out.Err.Message, "[secret] é") {
		t.Errorf("%d characters: %.40s", n, out.Err.Message)
	}
	if !strings.HasPrefix(long.Message, "hunter22") {
		t.Error("the provider's own error was changed")
	}
}

func TestABatchRunsInOrderAndSafeNeighboursSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKB()
		safe := true
		k.add("read", `{}`).Annotations.ParallelSafe = &safe
		k.add("write", `{}`)
		var mu sync.Mutex
		at := map[string]time.Duration{}
		start := time.Now()
		k.invoke = func(_ context.Context, req *provider.Request) (*tool.Result, error) {
			mu.Lock()
			at[string(req.Call.Arguments)] = time.Since(start)
			mu.Unlock()
			time.Sleep(time.Second)
			return tool.TextResult(string(req.Call.Arguments)), nil
		}
		p := newPipeline(t, &pipeline.Options{Parallel: 2})
		outs := p.Do(t.Context(), []*pipeline.Request{
			k.request("read", `{"a":0}`), k.request("read", `{"a":1}`), k.request("read", `{"a":2}`),
			k.request("write", `{"a":3}`), k.request("write", `{"a":4}`), k.request("read", `{"a":5}`), k.request("read", `{"a":6}`),
		})
		want := map[string]time.Duration{
			`{"a":0}`: 0, `{"a":1}`: 0, `{"a":2}`: time.Second, `{"a":3}`: 2 * time.Second, `{"a":4}`: 3 * time.Second,
			`{"a":5}`: 4 * time.Second, `{"a":6}`: 4 * time.Second,
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
		for i, o := range outs {
			if o.Err != nil || o.Result.Text() != string(o.Call.Arguments) || !strings.Contains(o.Result.Text(), string(rune('0'+i))) {
				t.Errorf("slot %d: %+v", i, o)
			}
		}
	})
}

func TestAnEntryThatFailsDoesNotStopItsSiblings(t *testing.T) {
	k := newKB()
	k.invoke = func(_ context.Context, req *provider.Request) (*tool.Result, error) {
		if string(req.Call.Arguments) == `{"n":1}` {
			panic("boom")
		}
		return tool.TextResult("ok"), nil
	}
	outs := newPipeline(t, nil).Do(t.Context(), []*pipeline.Request{
		k.request("other", ``), k.request("search", `{"n":1}`), k.request("search", `{"n":"x"}`), k.request("search", `{"n":2}`),
	})
	var got []tool.Code
	for _, o := range outs {
		got = append(got, codeOf(o))
	}
	if diff := cmp.Diff([]tool.Code{tool.UnknownTool, tool.Internal, tool.InvalidArguments, ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestABatchAsksOnceBeforeAnyEntryRuns(t *testing.T) {
	k := newKB()
	asked := 0
	s := &trace{decision: pipeline.Decision{Action: pipeline.Ask}, answer: func(e *pipeline.Entry) pipeline.Answer {
		asked++
		if len(k.ran()) != 0 {
			t.Error("an entry ran before all were asked about")
		}
		if string(e.Call.Arguments) == `{"n":2}` {
			return pipeline.Answer{Err: tool.Errorf(tool.ApprovalDenied, "no")}
		}
		return pipeline.Answer{ID: "A"}
	}}
	outs := traced(t, s).Do(t.Context(), []*pipeline.Request{k.request("search", `{"n":1}`), k.request("search", `{"n":2}`), k.request("search", `{"n":3}`)})
	if asked != 3 || outs[0].Err != nil || codeOf(outs[1]) != tool.ApprovalDenied || outs[2].Err != nil {
		t.Errorf("%d asked, %+v", asked, outs)
	}
	if diff := cmp.Diff([]string{`{"n":1}`, `{"n":3}`}, k.ran()); diff != "" {
		t.Error(diff)
	}
}

func TestNothingOfASuspendedBatchRuns(t *testing.T) {
	k := newKB()
	k.add("free", `{}`)
	s := &trace{answer: func(*pipeline.Entry) pipeline.Answer {
		return pipeline.Answer{Suspend: json.RawMessage(`{"state":"x"}`)}
	}}
	rules := asking{s, "search"}
	p := newPipeline(t, &pipeline.Options{Rules: rules, Approvals: s, Audit: s})
	outs := p.Do(t.Context(), []*pipeline.Request{k.request("free", ``), k.request("search", ``)})
	for i, o := range outs {
		if string(o.Suspended) != `{"state":"x"}` || codeOf(o) != tool.ApprovalPending {
			t.Errorf("entry %d: %+v", i, o)
		}
	}
	if runs := k.ran(); len(runs) != 0 {
		t.Errorf("ran %q", runs)
	}
}

// asking is a policy that asks about one tool.
type asking struct {
	*trace
	tool string
}

func (a asking) Decide(_ context.Context, e *pipeline.Entry) pipeline.Decision {
	if e.Call.Tool == a.tool {
		return pipeline.Decision{Action: pipeline.Ask}
	}
	return pipeline.Decision{}
}

func TestACallerThatGaveUpStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, k := &trace{}, newKB()
	k.invoke = func(context.Context, *provider.Request) (*tool.Result, error) {
		cancel()
		return tool.TextResult("done"), nil
	}
	outs := traced(t, s).Do(ctx, []*pipeline.Request{k.request("search", `{"n":1}`), k.request("search", `{"n":2}`)})
	if outs[0].Err != nil || codeOf(outs[1]) != tool.Cancelled || len(k.ran()) != 1 {
		t.Errorf("%+v, ran %q", outs, k.ran())
	}
}

func TestARequestIsNotChanged(t *testing.T) {
	k := newKB()
	req := k.request("search", `{"n":"1"}`)
	newPipeline(t, nil).Call(t.Context(), req)
	if req.Call.ID != "" || string(req.Call.Arguments) != `{"n":"1"}` {
		t.Errorf("%+v", req.Call)
	}
}

func TestCallIDsAreUniqueAndInOrder(t *testing.T) {
	p, k := newPipeline(t, nil), newKB()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 8 {
		wg.Go(func() {
			last := ""
			for range 500 {
				id := p.Call(t.Context(), k.request("search", ``)).Call.ID
				if id <= last || len(id) != 26 {
					t.Errorf("%s after %s", id, last)
				}
				last = id
				mu.Lock()
				if seen[id] {
					t.Errorf("%s twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestNewRefusesNegativeBounds(t *testing.T) {
	for _, o := range []pipeline.Options{{Timeout: -1}, {MaxResultBytes: -1}, {Parallel: -1}} {
		if _, err := pipeline.New(&o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
