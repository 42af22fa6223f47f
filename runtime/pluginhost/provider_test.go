package pluginhost_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestOptionsAreCheckedBeforeAnythingStarts(t *testing.T) {
	good := func() pluginhost.Options { return pluginhost.Options{Name: "p", Path: "/x", StateDir: "/x"} }
	tests := map[string]struct {
		edit func(*pluginhost.Options)
		want string
	}{
		"the least":                {func(*pluginhost.Options) {}, ""},
		"no name":                  {func(o *pluginhost.Options) { o.Name = "" }, "name"},
		"a name with a slash":      {func(o *pluginhost.Options) { o.Name = "../p" }, "name"},
		"no path":                  {func(o *pluginhost.Options) { o.Path = "" }, "path"},
		"no state folder":          {func(o *pluginhost.Options) { o.StateDir = "" }, "state"},
		"config that is no object": {func(o *pluginhost.Options) { o.Config = json.RawMessage(`[1]`) }, "config"},
		"a tiny message limit":     {func(o *pluginhost.Options) { o.MaxMessageBytes = 1 }, "max_message_bytes"},
		"a made-up isolation":      {func(o *pluginhost.Options) { o.Isolation = "jail" }, "isolation"},
		"a short digest":           {func(o *pluginhost.Options) { o.SHA256 = "abcd" }, "sha256"},
		"a made-up grant":          {func(o *pluginhost.Options) { o.Grant = []string{"everything"} }, "grant"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := good()
			tt.edit(&o)
			_, err := pluginhost.New(&o)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestALazyPluginOffersWhatItLastHad(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Lazy = true
	first := start(t, o)
	tools := first.ready().Tools // nothing was known: it was started to find out
	first.stop()

	// Nothing about the tools may look different: agents' prompt caches hang on it.
	second := start(t, o)
	offer := second.await("the cached tools", func(o *provider.Offer) bool { return len(o.Tools) > 0 })
	if diff := cmp.Diff(tools, offer.Tools); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, unmet := offer.Unmet["unavailable"]; !unmet {
		t.Error("a tool that was unavailable is offered from the cache")
	}
	// That tool is why this plugin is started all the same.
	second.ready()
}

func TestALazyPluginWithAWarmCacheCostsNoProcessUntilItsFirstCall(t *testing.T) {
	t.Parallel()
	o := options(t, "all-available")
	o.Lazy, o.IdleTimeout = true, 200*time.Millisecond
	first := start(t, o)
	first.ready()
	first.stop()

	h := start(t, o)
	offer := h.await("the cached tools", func(o *provider.Offer) bool { return len(o.Tools) > 0 })
	if offer.Status.State != provider.Installed || !h.Inspect().Cached {
		t.Errorf("status %+v, cached %v", offer.Status, h.Inspect().Cached)
	}
	if err := h.Check(t.Context(), "echo"); err != nil {
		t.Error(err)
	}
	if state := h.Offer().Status.State; state != provider.Installed {
		t.Errorf("a check of an available tool led to state %s", state)
	}
	if got := h.text("echo", `{}`); got != `{}` {
		t.Errorf("got %q", got)
	}
	h.await("the idle stop", func(o *provider.Offer) bool { return o.Status.State == provider.Installed && o.Status.PID == 0 })
}

func TestThePluginSeesNoMoreOfTheEnvironmentThanTheOperatorNamed(t *testing.T) {
	t.Setenv("HERMESD_TEST_SECRET", "s")
	t.Setenv("HERMESD_TEST_PASSED", "p")
	o := options(t)
	o.PassEnv = []string{"HERMESD_TEST_PASSED"}
	h := start(t, o)
	h.ready()
	var names []string
	for line := range strings.Lines(h.text("environment", `{}`)) {
		name, _, _ := strings.Cut(line, "=")
		if regexp.MustCompile(`^[A-Z_0-9]+$`).MatchString(name) { // the rest is a certificate's lines
			names = append(names, name)
		}
	}
	for _, name := range []string{"PATH", "HOME", "HERMESD_TEST_PASSED", markEnv, "HERMESD_PLUGIN", "HERMESD_LIFELINE_FD", "HERMESD_MAX_MESSAGE_BYTES"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s", name)
		}
	}
	known := []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "HERMESD_TEST_PASSED", markEnv, "HERMESD_PLUGIN", "HERMESD_LIFELINE_FD", "HERMESD_MAX_MESSAGE_BYTES",
		"PLUGIN_CLIENT_CERT", "PLUGIN_MAX_PORT", "PLUGIN_MIN_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR"}
	for _, name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("the plugin sees %s", name)
		}
	}
}

func TestAToolThatNeedsAVariableIsUnmetWithAHint(t *testing.T) {
	const key = "MISBEHAVE_KEY"
	tests := map[string]struct {
		set, env string
		pass     bool
		want     string // part of the reason; "" if met
	}{
		"neither set nor passed":    {want: "set it for hermesd and name it in pass_env"},
		"set but not passed":        {set: "k", want: `name it in pass_env of plugin "mis"`},
		"passed but not set":        {pass: true, want: "set it for hermesd"},
		"set and passed":            {set: "k", pass: true},
		"given in the block itself": {env: "k"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if t.Setenv(key, tt.set); tt.set == "" {
				if err := os.Unsetenv(key); err != nil {
					t.Fatal(err)
				}
			}
			o := options(t)
			o.Env[key] = tt.env
			if tt.pass {
				o.PassEnv = []string{key}
			}
			h := start(t, o)
			reason := h.ready().Unmet["needs-variables"]
			if !strings.Contains(reason, tt.want) || tt.want == "" && reason != "" {
				t.Errorf("reason %q, want %q", reason, tt.want)
			}
			err := h.Check(t.Context(), "needs-variables")
			if (err == nil) != (tt.want == "") {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestAvailabilityIsThePluginsWord(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	offer := h.await("availability", func(o *provider.Offer) bool { return len(o.Unmet) > 0 && o.Status.State == provider.Ready })
	if got := offer.Unmet["unavailable"]; got != "the moon is not full" {
		t.Errorf("reason %q", got)
	}
	if err := h.Check(t.Context(), "unavailable"); tool.CodeOf(err) != tool.NotAvailable || !strings.Contains(err.Error(), "the moon") {
		t.Errorf("check: %v", err)
	}
	if err := h.Check(t.Context(), "echo"); err != nil {
		t.Errorf("check: %v", err)
	}
}

func TestHostRequestsNeedAGrantAndADeclaration(t *testing.T) {
	everything := &provider.Host{
		OnAsk: func(_ context.Context, q provider.Question) (provider.Answer, error) {
			return provider.Answer{Action: "accept", Content: json.RawMessage(`{"schema":` + string(q.Schema) + `}`)}, nil
		},
		OnCallTool: func(_ context.Context, name tool.Name, args json.RawMessage) (*tool.Result, error) {
			return tool.TextResult(name + string(args)), nil
		},
		OnSample: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil },
	}
	all := []string{"ask_human", "call_tool", "sample", "store"}
	tests := map[string]struct {
		grant []string
		modes []string
		host  *provider.Host
		tool  string
		args  string
		want  string
	}{
		"a question with choices becomes a form": {grant: all, host: everything, tool: "ask",
			want: `accept {"schema":{"properties":{"choice":{"enum":["yes","no"],"type":"string"}},"required":["choice"],"type":"object"}}`},
		"a form that is none":              {grant: all, host: everything, tool: "ask-badly", want: "error bad_request"},
		"a call of another tool":           {grant: all, host: everything, tool: "call", want: `called: [{"type":"text","text":"other{\"a\":1}"}]`},
		"a completion":                     {grant: all, host: everything, tool: "sample", want: `sampled: {"maxTokens":5}`},
		"no grant":                         {grant: all[:1], host: everything, tool: "call", want: `error not_granted: the operator did not grant this: add "call_tool"`},
		"no declaration":                   {grant: all, modes: []string{"no-capabilities"}, host: everything, tool: "call", want: "error not_granted: the plugin does not declare"},
		"a client that can ask nobody":     {grant: all, tool: "ask", want: "error unsupported"},
		"a value is kept":                  {grant: all, tool: "store", args: `{"operation":1,"key":"k","size":3}`, want: `found true, value "", keys []`},
		"a value that is too big":          {grant: all, tool: "store", args: `{"operation":1,"key":"k","size":1048577}`, want: "error bad_request"},
		"a value, but no grant":            {tool: "store", args: `{"operation":0,"key":"k"}`, want: "error not_granted"},
		"a plugin that takes no answer":    {grant: all, modes: []string{"crash-Answer"}, host: everything, tool: "ask", want: "outcome_unknown"},
		"a request outside a call is none": {grant: all, modes: []string{"ask-outside"}, host: everything, tool: "echo", args: `{}`, want: `{}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, tt.modes...)
			o.Grant = tt.grant
			h := start(t, o)
			h.ready()
			req := h.request(tt.tool, tt.args)
			req.Host = tt.host
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			result, err := h.Invoke(ctx, req)
			got := string(tool.CodeOf(err))
			if err == nil {
				got = result.Text()
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if strings.Contains(tt.want, "not_granted") && len(h.log.lines("request refused")) == 0 {
				t.Error("the refusal was not logged")
			}
		})
	}
}

func TestToolsThatChangeAreListedAgainButNotAllTheTime(t *testing.T) {
	t.Parallel()
	h := start(t, options(t, "changing-list"))
	h.ready()
	lists := func(o *provider.Offer) (n int) {
		for _, d := range o.Tools {
			if number, ok := strings.CutPrefix(d.Name, "changed_"); ok {
				n, _ = strconv.Atoi(number) // what is no number is no list
			}
		}
		return n
	}
	// Each list changes the next, and the plugin tells as fast as it can. A host that followed would list as often as it calls.
	const calls = 400
	for range calls {
		h.text("echo", `{}`)
	}
	if n := lists(h.Offer()); n > calls/20 {
		t.Errorf("%d lists while there were %d calls", n, calls)
	}
	h.await("the third list", func(o *provider.Offer) bool { return lists(o) >= 3 })
}

func TestMalformedDefinitionsAreRefusedAndTheRestWorks(t *testing.T) {
	t.Parallel()
	h := start(t, options(t, "malformed-tools"))
	offer := h.ready()
	for _, name := range []string{"bad_json", "bad_type", "bad_schema", "bad_output", "bad_coldness", "bad_example", "bad_meta", "too_long"} {
		if offer.Refused[name] == "" {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, refused := offer.Refused["echo"]; refused {
		t.Error("a second definition put the first in quarantine")
	}
	h.text("echo", `{}`)
}

func TestAFloodHarmsNobody(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	h.ready()
	h.text("flood", `{}`)
	for range 50 {
		h.text("echo", `{}`)
	}
	eventually(t, 5*time.Second, "the count of lines left out", func() bool { return len(h.log.lines("lines were left out")) > 0 })
	if n := len(h.log.String()); n > 1<<20 {
		t.Errorf("the log has %d bytes", n)
	}
}

func TestWhatAPluginPrintsIsLogged(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	h.ready()
	h.text("stderr", `{}`)
	h.text("print", `{}`)
	for message, want := range map[string]string{"hot": "WARN", "plain line": "INFO", "printed by a tool": "INFO"} {
		eventually(t, 2*time.Second, message, func() bool { return len(h.log.lines(message)) > 0 })
		entry := h.log.lines(message)[0]
		if entry["level"] != want {
			t.Errorf("%q has level %v", message, entry["level"])
		}
		if entry["provider"] == "forged" {
			t.Error("the plugin gave itself a name")
		}
	}
}

func TestInspectTellsWhatHolds(t *testing.T) {
	t.Parallel()
	off := false
	o := options(t)
	o.MTLS, o.Isolation = &off, pluginhost.IsolationNone
	h := start(t, o)
	h.ready()
	x := h.Inspect()
	if x.Name != "misbehave" || x.Version != "0.0.1" || x.ContractMin != 1 || len(x.Digest) != 64 || x.Cached {
		t.Errorf("inspection %+v", x)
	}
	got := map[string]bool{}
	for _, l := range x.Layers {
		got[l.Name] = l.Applied
	}
	want := map[string]bool{
		"clean environment": true, "no standard input": true, "process group": true, "containment of descendants": false,
		"executes what was hashed": true, "certificates on the connection": false, "socket folder": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
}

func TestWhatIsExecutedIsWhatWasHashed(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(testbin.Build(t, misbehave))
	if err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Path = filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(o.Path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	probe := start(t, o)
	probe.ready()
	o.SHA256 = probe.Inspect().Digest
	probe.stop()

	pinned := start(t, o)
	pinned.ready()
	// A text file over the path: the running process does not care, the next start refuses it.
	if err := os.WriteFile(o.Path+".new", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(o.Path+".new", o.Path); err != nil {
		t.Fatal(err)
	}
	pinned.text("echo", `{}`)
	pinned.Restart()
	offer := pinned.await("the refusal", func(o *provider.Offer) bool { return o.Status.State == provider.Quarantined })
	if !strings.Contains(offer.Status.Reason, "the configuration pins "+o.SHA256) {
		t.Errorf("reason %q", offer.Status.Reason)
	}
	if _, err := pinned.invoke("echo", `{}`); tool.CodeOf(err) != tool.ProviderQuarantined {
		t.Errorf("call: %v", err)
	}
}

func TestAScriptIsAPluginToo(t *testing.T) {
	t.Parallel()
	o := options(t)
	script := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+o.Path+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Sandbox.Read = []string{o.Path}
	o.Path = script
	h := start(t, o)
	h.ready()
	h.text("echo", `{}`)
}

func TestAHookDecidesOrFailsInTime(t *testing.T) {
	tests := map[string]struct {
		modes []string
		want  string
		code  tool.Code
	}{
		"a decision":           {[]string{"hook"}, `{"action":"block","message":"11 bytes"}`, ""},
		"no hook":              {nil, "", tool.Unsupported},
		"no JSON":              {[]string{"hook", "bad-decision"}, "", tool.BadAnswer},
		"no answer":            {[]string{"hook", "hang-Intercept"}, "", tool.Timeout},
		"a crash while asking": {[]string{"hook", "crash-Intercept"}, "", tool.HookFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, options(t, tt.modes...))
			h.ready()
			if h.IsHook() != (tt.modes != nil) {
				t.Errorf("is a hook: %v", h.IsHook())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, err := h.Intercept(ctx, json.RawMessage(`{"tool":""}`))
			if tool.CodeOf(err) != tt.code || string(got) != tt.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestCallsOfAllToolsAtOnceHaveOneOutcomeEach(t *testing.T) {
	t.Parallel()
	h := start(t, options(t))
	h.ready()
	const callers, calls = 16, 50
	outcomes := make(chan string, callers*calls)
	for range callers {
		go func() {
			for range calls {
				result, err := h.Invoke(t.Context(), h.request("echo", `{"x":1}`))
				if err != nil {
					outcomes <- err.Error()
				} else {
					outcomes <- result.Text()
				}
			}
		}()
	}
	for range callers * calls {
		if got := <-outcomes; got != `{"x":1}` {
			t.Fatalf("outcome %q", got)
		}
	}
}

func TestOnlyListedToolsAreRemembered(t *testing.T) {
	t.Parallel()
	h := start(t, options(t, "gossip"))
	offer := h.await("the gossip", func(o *provider.Offer) bool { return o.Unmet["echo"] == "hearsay" })
	if n := h.Verdicts(); n > len(offer.Tools) {
		t.Errorf("%d tools are remembered, %d are listed", n, len(offer.Tools))
	}
}
