package mcpclient_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestResultsReachTheAgentByteForByte(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	for name, result := range map[string]string{
		"keys keep their order and numbers their digits": `{"content":[{"type":"text","text":"z","annotations":{"b":1,"a":12345678901234567890.10}}],"structuredContent":{"z":1e400,"a":9007199254740993}}`,
		"escapes stay as they are written":               `{"content":[{"text":"\u003cb\u003e \/ \u00e9","type":"text"}]}`,
		"every kind of block passes, known or not":       `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource_link","uri":"x:y","name":"n"},{"type":"hologram","depth":3}]}`,
		"white space inside a block stays":               `{"content":[{ "type" : "text", "text":"a" }]}`,
		"an error of the tool is a result":               `{"content":[{"type":"text","text":"no"}],"isError":true}`,
		"meta passes":                                    `{"content":[],"_meta":{"vendor/x":[1, 2]}}`,
		"structured content may be other than an object": `{"content":[],"structuredContent":[1,2]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := r.on(t)
			args, err := json.Marshal(map[string]string{"result": result})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.call("raw", string(args))
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Content    []json.RawMessage `json:"content"`
				Structured json.RawMessage   `json:"structuredContent"`
				IsError    bool              `json:"isError"`
				Meta       json.RawMessage   `json:"_meta"`
			}
			if err := json.Unmarshal([]byte(result), &want); err != nil {
				t.Fatal(err)
			}
			if len(got.Content) != len(want.Content) {
				t.Fatalf("got %d blocks, want %d", len(got.Content), len(want.Content))
			}
			for i := range want.Content {
				if diff := cmp.Diff(string(want.Content[i]), string(got.Content[i])); diff != "" {
					t.Error(diff)
				}
			}
			if diff := cmp.Diff(string(want.Structured), string(got.Structured)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(string(want.Meta), string(got.Meta)); diff != "" {
				t.Error(diff)
			}
			if got.IsError != want.IsError {
				t.Errorf("isError is %v", got.IsError)
			}
		})
	}
}

func TestArgumentsReachTheServerAsTheyAre(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	if got := r.text("echo", "{\"z\":1.0,\n \"a\":12345678901234567890,\"s\":\"<&>\\u2028\"}", nil); got != `{"z":1.0,"a":12345678901234567890,"s":"<&>\u2028"}` {
		t.Errorf("the server got %s", got)
	}
	if got := r.text("echo", "", nil); got != "{}" {
		t.Errorf("without arguments the server got %s", got)
	}
	r.fails(t.Context(), r.request("echo", `{"a":`, nil), tool.InvalidArguments)
	r.alive()
}

func TestAnswersThatBreakTheProtocol(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	for name, result := range map[string]string{
		"no content at all":          `{}`,
		"content is no array":        `{"content":"text"}`,
		"a block is no object":       `{"content":["text"]}`,
		"isError is no boolean":      `{"content":[],"isError":"yes"}`,
		"the result is a text":       `"done"`,
		"input that cannot be read":  `{"resultType":"input_required","inputRequests":[1]}`,
		"the result is nothing":      `null`,
		"structured content is null": `{"structuredContent":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := r.on(t)
			args, err := json.Marshal(map[string]string{"result": result})
			if err != nil {
				t.Fatal(err)
			}
			r.fails(t.Context(), r.request("raw", string(args), nil), tool.BadAnswer)
		})
	}
	r.alive()
}

func TestErrorsOfTheServer(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	for name, c := range map[string]struct {
		failure string
		code    tool.Code
		message string
	}{
		"invalid params are the caller's fault": {`{"code":-32602,"message":"city is missing"}`, tool.InvalidArguments, `server "kb" refused the call: city is missing`},
		"anything else is the tool's":           {`{"code":-32000,"message":"boom"}`, tool.ToolFailed, `server "kb" refused the call: boom`},
		"an error without a text":               {`{"code":1}`, tool.ToolFailed, `server "kb" refused the call: no reason given`},
	} {
		t.Run(name, func(t *testing.T) {
			r := r.on(t)
			e := r.fails(t.Context(), r.request("rpcerror", c.failure, nil), c.code)
			if e.Message != c.message {
				t.Errorf("message %q, want %q", e.Message, c.message)
			}
		})
	}
	t.Run("a long text is cut for the agent and kept for the operator", func(t *testing.T) {
		r := r.on(t)
		e := r.fails(t.Context(), r.request("rpcerror", `{"code":-1,"message":"`+strings.Repeat("é", 5000)+`"}`, nil), tool.ToolFailed)
		if len(e.Message) > 2200 || len(e.Detail) < 10_000 {
			t.Errorf("message has %d bytes, detail %d", len(e.Message), len(e.Detail))
		}
	})
	if s := r.Offer().Status; s.Restarts != 0 || s.State != provider.Ready {
		t.Errorf("errors of tools harmed the server: %+v", s)
	}
}

func TestOneBadCallHarmsNoOther(t *testing.T) {
	o := fault(t)
	o.MaxMessageBytes = 2<<20 + 1000
	r := start(t, o)
	r.ready()
	for name, check := range map[string]func(t *testing.T, r *running){
		"a call that is never answered times out": func(t *testing.T, r *running) {
			ctx, cancel := within(t.Context(), 50*time.Millisecond)
			defer cancel()
			r.fails(ctx, r.request("hang", "{}", nil), tool.Timeout)
		},
		"an answer that comes after the call was given up is dropped": func(t *testing.T, r *running) {
			ctx, cancel := within(t.Context(), 50*time.Millisecond)
			defer cancel()
			r.fails(ctx, r.request("late", "{}", nil), tool.Timeout)
		},
		"a call that is cancelled says so": func(t *testing.T, r *running) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			r.fails(ctx, r.request("hang", "{}", nil), tool.Cancelled)
		},
		"garbage on standard output is skipped": func(t *testing.T, r *running) {
			if got := r.text("garbage", "{}", nil); got != "done" {
				t.Error(got)
			}
		},
		"a flood is survived and logged in part": func(t *testing.T, r *running) {
			if got := r.text("flood", "{}", nil); got != "done" {
				t.Error(got)
			}
			if n := strings.Count(r.logs.String(), "\n"); n > 1000 {
				t.Errorf("%d lines were logged", n)
			}
		},
		"2 MiB on one line are a result like any other": func(t *testing.T, r *running) {
			if got := r.text("big", "{}", nil); len(got) != 2<<20 {
				t.Errorf("got %d bytes", len(got))
			}
		},
		"a line beyond the limit fails its own call": func(t *testing.T, r *running) {
			ctx, cancel := within(t.Context(), patience)
			defer cancel()
			r.fails(ctx, r.request("huge", "{}", nil), tool.ResultTooLarge)
		},
		"a result beyond the caller's limit fails": func(t *testing.T, r *running) {
			req := r.request("big", "{}", nil)
			req.MaxResultBytes = 1 << 20
			r.fails(t.Context(), req, tool.ResultTooLarge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := r.on(t)
			check(t, r)
			r.alive()
		})
	}
	if s := r.Offer().Status; s.Restarts != 0 {
		t.Errorf("the connection was rebuilt: %+v", s)
	}
}

func TestACancelledCallIsToldToTheServer(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	ctx, cancel := within(t.Context(), 20*time.Millisecond)
	defer cancel()
	r.fails(ctx, r.request("late", "{}", nil), tool.Timeout)
	deadline := time.Now().Add(patience)
	for !strings.Contains(r.logs.String(), "msg=cancelled") {
		if time.Now().After(deadline) {
			t.Fatal("the server was not told")
		}
		r.alive()
	}
}

func TestAServerThatDiesDuringACall(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	e := r.fails(t.Context(), r.request("die", "{}", nil), tool.OutcomeUnknown)
	if e.Retryable {
		t.Error("a call that may have run is called retryable")
	}
	took(t, time.Second, "the way back", r.alive)
	if len(r.Offer().Tools) == 0 {
		t.Error("the tools vanished")
	}
	if log := r.logs.String(); !strings.Contains(log, "exit status 7") || !strings.Contains(log, "out of cheese") {
		t.Error("the log does not say how the server ended")
	}
}

func TestAServerThatIsKilledIsBackWithinASecond(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	r.alive()
	pid := r.Offer().Status.PID
	if pid <= 1 {
		t.Fatalf("pid %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	took(t, time.Second, "the way back", func() {
		for { // a call may have gone into the pipe of the dead process
			_, err := r.call("echo", "{}")
			if err == nil {
				return
			}
			if tool.CodeOf(err) != tool.OutcomeUnknown {
				t.Fatal(err)
			}
		}
	})
}

func TestFaultsOfTheStart(t *testing.T) {
	healthy := start(t, fault(t))
	healthy.ready()
	for name, c := range map[string]struct {
		env    []string
		reason string // "" if the start has to succeed all the same
	}{
		"hangs at initialize":                     {[]string{"FAULT_AT=initialize", "FAULT=hang"}, "connect_timeout"},
		"hangs at the list":                       {[]string{"FAULT_AT=list", "FAULT=hang"}, "connect_timeout"},
		"dies at initialize, with its last words": {[]string{"FAULT_AT=initialize", "FAULT=die"}, "cannot open the database"},
		"dies at the list, with its exit status":  {[]string{"FAULT_AT=list", "FAULT=die"}, "exit status 3"},
		"repeats one cursor for ever":             {[]string{"PAGES=loop"}, "repeats the cursor"},
		"lists pages without end":                 {[]string{"PAGES=many"}, "pages"},
		"prints before it speaks":                 {[]string{"FAULT_AT=initialize", "FAULT=garbage"}, ""},
		"does not answer the newest handshake":    {[]string{"FAULT_AT=discover", "FAULT=silent"}, ""},
		"dies of the newest handshake":            {[]string{"FAULT_AT=discover", "FAULT=die"}, ""},
		"has no tools at all":                     {[]string{"NO_TOOLS=1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fault(t, c.env...)
			o.ConnectTimeout = 3 * time.Second
			if strings.Contains(c.reason, "connect_timeout") {
				o.ConnectTimeout = 500 * time.Millisecond
			}
			r := start(t, o)
			if c.reason == "" {
				r.ready()
				return
			}
			offer := r.await("a failed start", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff })
			if !strings.Contains(offer.Status.Reason, c.reason) {
				t.Errorf("the reason is %q, want %q in it", offer.Status.Reason, c.reason)
			}
			healthy.alive()
		})
	}
	t.Run("a program that is missing is named", func(t *testing.T) {
		r := start(t, mcpclient.Options{Command: []string{"no-such-program-here"}})
		offer := r.await("a failed start", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff })
		if !strings.Contains(offer.Status.Reason, `"no-such-program-here" was not found`) {
			t.Error(offer.Status.Reason)
		}
	})
}

func TestAServerIsKeptToSessionsWhereTheOperatorWantsIt(t *testing.T) {
	host := &provider.Host{OnAsk: func(context.Context, provider.Question) (provider.Answer, error) {
		return provider.Answer{Action: "accept", Content: json.RawMessage(`{}`)}, nil
	}}
	for sessions, want := range map[bool]string{false: "accept map[] kept", true: "accept map[]"} { // see newSDKServer: only the newer version keeps a state
		r := start(t, mcpclient.Options{Command: []string{self(t)}, Env: role("sdk"), Sessions: sessions})
		r.ready()
		if got := r.text("ask", `{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}`, host); got != want {
			t.Errorf("sessions %t: %q", sessions, got)
		}
	}
	o := fault(t, "FAULT_AT=discover", "FAULT=hang") // is never asked
	o.Sessions, o.ConnectTimeout = true, patience
	r := start(t, o)
	r.ready()
	r.alive()
}

func TestAListOfSeveralPages(t *testing.T) {
	r := start(t, fault(t, "PAGES=two"))
	r.ready()
	if got := len(r.Offer().Tools); got != 2 {
		t.Errorf("%d tools", got)
	}
}

func TestAChangedListIsOffered(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	var callers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 { // under load
		callers.Go(func() {
			for ctx.Err() == nil {
				if _, err := r.Invoke(t.Context(), r.request("echo", `{}`, nil)); err != nil {
					t.Errorf("a call during a change: %v", err)
				}
			}
		})
	}
	for _, step := range []struct{ from, to string }{{"before", "after"}, {"after", "before"}} {
		r.text(step.from, "{}", nil)
		r.await("the new name "+step.to, func(o *provider.Offer) bool {
			return o.Tools[len(o.Tools)-1].OwnName == step.to
		})
	}
	cancel()
	callers.Wait()
}

func TestALazyServerCostsNoProcessUntilItsFirstCall(t *testing.T) {
	dir := t.TempDir()
	starts := filepath.Join(dir, "starts")
	o := fault(t, "STARTS="+starts)
	o.Lazy, o.CacheDir = true, filepath.Join(dir, "cache")
	first := start(t, o)
	first.await("the first list", func(o *provider.Offer) bool { return len(o.Tools) > 0 })
	first.stop()
	if n := lines(t, starts); n != 1 {
		t.Fatalf("%d starts to list the tools", n)
	}

	second := start(t, o)
	if len(second.Offer().Tools) == 0 {
		t.Fatal("the tools of the last run are not offered")
	}
	if s := second.Offer().Status; s.State != provider.Installed {
		t.Errorf("state %s", s.State)
	}
	if n := lines(t, starts); n != 1 {
		t.Errorf("%d starts before the first call", n)
	}
	second.alive()
	if n := lines(t, starts); n != 2 {
		t.Errorf("%d starts after the first call", n)
	}
	second.stop()

	t.Run("another configuration has another cache", func(t *testing.T) {
		o := o
		o.Env = role("fault", "STARTS="+starts, "OTHER=1")
		o.Command = []string{"/does/not/exist"}
		if r := start(t, o); len(r.Offer().Tools) != 0 {
			t.Error("it has the tools of another command")
		}
	})
	t.Run("a damaged cache is no cache", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(o.CacheDir, "mcp-*.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		if err := os.WriteFile(files[0], []byte(`{"format":1,"tools":[{"name":`), 0o600); err != nil {
			t.Fatal(err)
		}
		r := start(t, o)
		r.await("the list", func(o *provider.Offer) bool { return len(o.Tools) > 0 })
	})
	t.Run("an idle server stops, and comes back for the next call", func(t *testing.T) {
		o := o
		o.IdleTimeout = 50 * time.Millisecond
		r := start(t, o)
		r.alive()
		r.await("the idle stop", func(o *provider.Offer) bool { return o.Status.State == provider.Installed })
		r.alive()
	})
}

func TestCallsRunOneAfterTheOtherUnlessParallel(t *testing.T) {
	for name, c := range map[string]struct {
		parallel bool
		code     tool.Code
	}{
		"a server that takes one call at a time": {false, tool.NotSent},
		"a server that takes calls side by side": {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := fault(t)
			o.Parallel = c.parallel
			r := start(t, o)
			r.ready()
			asked := make(chan struct{})
			release := make(chan struct{})
			host := &provider.Host{OnAsk: func(context.Context, provider.Question) (provider.Answer, error) {
				close(asked)
				<-release
				return provider.Answer{Action: "decline"}, nil
			}}
			var first sync.WaitGroup
			first.Go(func() { r.text("ask", `{"message":"?"}`, host) })
			<-asked
			ctx, cancel := within(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := r.Invoke(ctx, r.request("echo", "{}", nil))
			if tool.CodeOf(err) != c.code {
				t.Errorf("the second call ended with %v, want code %q", err, c.code)
			}
			close(release)
			first.Wait()
			r.alive()
		})
	}
}

func TestAServerThatReadsNothingFailsCallsOneByOneAndIsReplaced(t *testing.T) {
	o := fault(t)
	o.ConnectTimeout = 500 * time.Millisecond
	r := start(t, o)
	r.ready()
	var calls sync.WaitGroup
	for range 4 { // the answer to an earlier request may fall into the first
		calls.Go(func() {
			ctx, cancel := within(t.Context(), 50*time.Millisecond)
			defer cancel()
			r.fails(ctx, r.request("stop", `{"filler":"`+strings.Repeat("x", 100_000)+`"}`, nil), tool.Timeout)
		})
		calls.Wait()
	}
	r.await("the silent server to be replaced", func(o *provider.Offer) bool { return o.Status.Restarts > 0 })
	r.alive()
}

func TestAStoppedProviderLeavesNothing(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	pid := r.Offer().Status.PID
	if pid <= 1 {
		t.Fatalf("pid %d", pid)
	}
	r.stop()
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the process is still there")
	}
	_, err := r.call("echo", "{}")
	if tool.CodeOf(err) != tool.ShuttingDown {
		t.Errorf("a call afterwards: %v", err)
	}
}
