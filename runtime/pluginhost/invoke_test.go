package pluginhost_test

import (
	"context"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const testArch = runtime.GOARCH

func TestACallHasExactlyOneOutcome(t *testing.T) {
	t.Parallel()
	o := options(t)
	h := start(t, o)
	h.ready()
	tests := map[string]struct {
		tool string
		args string
		code tool.Code
		text string // of the result or the error, as a regular expression
	}{
		"arguments arrive as they were sent":           {tool: "echo", args: `{"n": 12345678901234567890}`, text: `^\{"n": 12345678901234567890\}$`},
		"who calls arrives":                            {tool: "request", args: `{}`, text: `call call-1, agent agent-1, session session-1, attended false, granted \[\], limit 8388608, deadline true`},
		"an error of gRPC is the tool's":               {tool: "status", args: `{}`, code: tool.ToolFailed, text: `status failed: an error of gRPC`},
		"no result":                                    {tool: "nothing", args: `{}`, code: tool.BadAnswer, text: `without a result`},
		"an event of no kind":                          {tool: "unknown-event", args: `{}`, code: tool.BadAnswer, text: `no known kind`},
		"content that is no JSON":                      {tool: "garbage", args: `{}`, code: tool.BadAnswer, text: `content block 1`},
		"content of no type":                           {tool: "garbage-type", args: `{}`, code: tool.BadAnswer, text: `content block 1`},
		"a structured result that is no JSON":          {tool: "bad-structured", args: `{}`, code: tool.BadAnswer, text: `is not JSON`},
		"a meta that is no object":                     {tool: "bad-meta", args: `{}`, code: tool.BadAnswer, text: `_meta`},
		"an end within a piece":                        {tool: "unfinished", args: `{}`, code: tool.BadAnswer, text: `middle of a piece`},
		"the first of two results counts":              {tool: "two-results", args: `{}`, text: `^first$`},
		"a result in endless pieces":                   {tool: "endless-chunks", args: `{}`, code: tool.ResultTooLarge, text: `8388608 bytes`},
		"a message above the limit":                    {tool: "huge-message", args: `{}`, code: tool.ResultTooLarge, text: `16777216 bytes`},
		"an error that pretends to be the daemon's":    {tool: "forged-error", args: `{}`, code: tool.ToolFailed, text: `gave no reason`},
		"standard output is not the protocol's":        {tool: "print", args: `{}`, text: `^ok$`},
		"lines of a megabyte":                          {tool: "long-line", args: `{}`, text: `^written$`},
		"a tool that is unavailable but called anyway": {tool: "unavailable", args: `{}`, text: `after all`},
		"a request of no kind":                         {tool: "ask-nothing", args: `{}`, text: `error bad_request: a host request of no known kind`},
		"a request that was not granted":               {tool: "ask", args: `{}`, text: `error not_granted: .*add "ask_human" to grant in the block of plugin "mis"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := h.invoke(tt.tool, tt.args)
			if got := tool.CodeOf(err); got != tt.code {
				t.Fatalf("code %q (%v), want %q", got, err, tt.code)
			}
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				text = result.Text()
			}
			if !regexp.MustCompile(tt.text).MatchString(text) {
				t.Errorf("got %q, want %q", text[:min(len(text), 300)], tt.text)
			}
		})
	}
	if status := h.Offer().Status; status.Restarts != 0 {
		t.Errorf("the process was replaced: %+v", status)
	}
}

func TestAResultInPiecesIsPutTogether(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	h.ready()
	got, err := h.invoke("chunks", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &tool.Result{
		Content:    []tool.Content{tool.Content(`{"type":"text","text":"in pieces"}`), tool.Content(`{"type":"text","text":"whole"}`)},
		Structured: []byte(`{"n":12345678901234567890}`), Meta: []byte(`{"k":1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATypedErrorArrivesWhole(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	h.ready()
	_, err := h.invoke("error", `{}`)
	got := tool.AsError(err)
	want := &tool.Error{
		Code: tool.DownstreamFailed, Message: "the weather service is down", Detail: "503", Retryable: true,
		Blame: tool.BlameDownstream, Pointer: "/city", Extra: map[string]any{"hint": "wait"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tool.Error{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProgressAndLogsReachTheCaller(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	h.ready()
	var steps []tool.Progress
	var logs []string
	req := h.request("progress", `{}`)
	req.Host = &provider.Host{
		OnProgress: func(p tool.Progress) { steps = append(steps, p) },
		OnLog:      func(l tool.LogRecord) { logs = append(logs, l.Level+" "+l.Logger+" "+string(l.Data)) },
	}
	if _, err := h.Invoke(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tool.Progress{{Done: 1, Total: 3, Note: "step"}, {Done: 2, Total: 3, Note: "step"}, {Done: 3, Total: 3, Note: "step"}}, steps); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`warning l {"a":1}`, `info  "no json"`}, logs); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
}

func TestADeathInACallHasItsOutcomeAndTheNextCallWorks(t *testing.T) {
	tests := map[string]struct {
		tool string
		want string
	}{
		"a panic":           {"panic", "exit status 2"},
		"a kill":            {"kill", "killed by SIGKILL"},
		"an exit in stream": {"die-in-stream", "disk full"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, options(t))
			before := h.ready()
			_, err := h.invoke(tt.tool, `{}`)
			if tool.CodeOf(err) != tool.OutcomeUnknown || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want outcome_unknown and %q", err, tt.want)
			}
			begin := time.Now()
			if got := h.text("echo", `{"a":1}`); got != `{"a":1}` {
				t.Errorf("echo %q", got)
			}
			if took := time.Since(begin); took > strict(2*time.Second) {
				t.Errorf("callable again after %v", took)
			}
			after := h.Offer()
			if &before.Tools[0] != &after.Tools[0] {
				t.Error("the tools were registered anew")
			}
			if after.Status.Restarts != 1 {
				t.Errorf("%d restarts", after.Status.Restarts)
			}
		})
	}
}

func TestADeathFromOutsideIsMendedWithinASecond(t *testing.T) {
	t.Parallel()
	within(t, time.Second, func() time.Duration {
		h := start(t, options(t))
		pid := h.ready().Status.PID
		h.text("echo", `{}`)
		if err := kill(pid); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		h.await("another process", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && o.Status.PID != pid })
		h.text("echo", `{}`)
		return time.Since(begin)
	})
}

func TestACancelReachesThePluginAndIsNotWaitedFor(t *testing.T) {
	for _, name := range []string{"ignore-cancel", "notice-cancel", "endless-events"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			h := start(t, o)
			h.ready()
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				select {
				case <-time.After(50 * time.Millisecond):
				case <-t.Context().Done():
				}
				cancel()
			}()
			begin := time.Now()
			_, err := h.Invoke(ctx, h.request(name, `{}`))
			if tool.CodeOf(err) != tool.Cancelled {
				t.Errorf("error %v", err)
			}
			if took := time.Since(begin); took > strict(150*time.Millisecond) {
				t.Errorf("took %v", took)
			}
			if name == "notice-cancel" {
				eventually(t, time.Second, "the plugin notices", func() bool {
					_, err := os.Stat(o.Env[markEnv])
					return err == nil
				})
			}
			h.text("echo", `{}`)
		})
	}
}

func TestAStoppedProcessEndsTheCallAndIsReplaced(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	pid := h.ready().Status.PID
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := h.Invoke(ctx, h.request("stop", `{}`))
	if tool.CodeOf(err) != tool.Timeout {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > strict(300*time.Millisecond) {
		t.Errorf("the call took %v", took)
	}
	// Two health checks of 2 s each follow.
	h.await("another process", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && o.Status.PID != pid })
	h.text("echo", `{}`)
	if took := time.Since(begin); took > strict(8*time.Second) {
		t.Errorf("replaced after %v", took)
	}
}
