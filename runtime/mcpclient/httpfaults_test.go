package mcpclient_test

import (
	"context"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	jsonText    = "application/json"
	eventStream = "text/event-stream"
	// messageLimit is what one message may have in these tests: enough for 2 MiB of text.
	messageLimit = 2<<20 + 1000
	logEvent     = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}` + "\n\n"
)

// httpFaults are the ways in which a server over HTTP can answer badly, and what becomes of a call that is answered so. A new
// one joins by one line.
var httpFaults = map[string]struct {
	answer httpFault
	code   tool.Code // of a call; "" for one that succeeds
	start  bool      // it keeps a server from starting
}{
	"headers_never_come":        {hang("", ""), tool.Timeout, true},
	"no_body_behind_headers":    {hang(jsonText, ""), tool.Timeout, true},
	"half_a_body_and_silence":   {hang(jsonText, `{"jsonrpc":"2.0",`), tool.Timeout, true},
	"silent_stream":             {hang(eventStream, ""), tool.Timeout, true},
	"half_an_event_and_silence": {hang(eventStream, `data: {"jsonrpc":`), tool.Timeout, true},
	"closed_before_headers":     {cut("", ""), tool.OutcomeUnknown, true},
	"closed_in_the_body":        {cut(jsonText, `{"jsonrpc":"2.0",`), tool.OutcomeUnknown, true},
	"closed_in_a_stream":        {cut(eventStream, ": comment\n\n"), tool.OutcomeUnknown, true},
	"closed_in_an_event":        {cut(eventStream, `data: {"jsonrpc":"2.0",`), tool.OutcomeUnknown, true},
	"stream_without_answer":     {whole(eventStream, logEvent), tool.OutcomeUnknown, true},
	"half_a_json":               {whole(jsonText, `{"jsonrpc":"2.0","id":ID,"result":{`), tool.OutcomeUnknown, true},
	"half_a_json_event":         {whole(eventStream, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\n\n"), tool.OutcomeUnknown, true},
	"nothing_at_all":            {whole(jsonText, ""), tool.OutcomeUnknown, true},
	"html":                      {whole("text/html", "<html>"), tool.OutcomeUnknown, true},
	"no_content_type":           {whole("", `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`), tool.OutcomeUnknown, true},
	"accepted_without_answer":   {status(http.StatusAccepted), tool.OutcomeUnknown, true},
	"answer_to_another_request": {whole(jsonText, `{"jsonrpc":"2.0","id":77,"result":{"content":[]}}`), tool.OutcomeUnknown, true},
	"status_500":                {status(http.StatusInternalServerError), tool.OutcomeUnknown, true},
	"status_502":                {status(http.StatusBadGateway), tool.OutcomeUnknown, true},
	"status_503":                {status(http.StatusServiceUnavailable, "Retry-After", "7"), tool.DownstreamFailed, true},
	"status_429":                {status(http.StatusTooManyRequests, "Retry-After", "7"), tool.DownstreamFailed, true},
	"status_401":                {status(http.StatusUnauthorized), tool.DownstreamFailed, true},
	"status_403":                {status(http.StatusForbidden), tool.DownstreamFailed, true},
	"flood_of_log_lines":        {endlessly(eventStream, "", logEvent), tool.Timeout, true},
	"flood_of_garbage":          {endlessly(eventStream, "", "data: {garbage\n\n"), tool.Timeout, true},
	"flood_of_pings":            {endlessly(eventStream, "", `data: {"jsonrpc":"2.0","id":"p","method":"ping"}`+"\n\n"), tool.Timeout, true},
	"flood_of_questions":        {endlessly(eventStream, "", `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`+"\n\n"), tool.Timeout, true},
	"flood_of_list_changes":     {endlessly(eventStream, "", `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n\n"), tool.Timeout, true},
	"flood_of_unknown_words":    {endlessly(eventStream, "", `data: {"jsonrpc":"2.0","method":"notifications/novelty","params":{}}`+"\n\n"), tool.Timeout, true},
	"flood_of_comments":         {endlessly(eventStream, "", ":\n\n"), tool.Timeout, true},
	"one_endless_event":         {endlessly(eventStream, "data: ", "x"), tool.ResultTooLarge, true},
	"one_endless_event_in_rows": {endlessly(eventStream, "", "data: x\n"), tool.ResultTooLarge, true},
	"endless_json":              {endlessly(jsonText, `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`, "x"), tool.ResultTooLarge, true},
	"gzip_bomb":                 {bomb(jsonText, `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`), tool.ResultTooLarge, true},
	"gzip_bomb_in_a_stream":     {bomb(eventStream, `data: {"jsonrpc":"2.0","id":ID,"result":"`), tool.ResultTooLarge, true},
	"more_than_the_limit":       {whole(jsonText, `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`+strings.Repeat("x", 3<<20)+`"}]}}`), tool.ResultTooLarge, true},
	"an_event_over_the_limit":   {whole(eventStream, `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`+strings.Repeat("x", 3<<20)+"\"}]}}\n\n"), tool.ResultTooLarge, true},
	"two_mebibytes":             {whole(jsonText, `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}}`), "", false},
	"two_mebibytes_in_an_event": {whole(eventStream, `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+"\"}]}}\n\n"), "", false},
	"late":                      {slowly(time.Hour), tool.Timeout, true},
}

func limited(o *mcpclient.Options) { o.MaxMessageBytes = messageLimit }

// beside calls a healthy server again and again while f runs. All of the calls have to succeed, none may take long.
func beside(t *testing.T, f func()) {
	t.Helper()
	const most = 5 * time.Second // on a loaded machine, with the race detector; 10 ms otherwise
	healthy := startHTTP(t, streamableHandler(t, newSDKServer(legacyOnly), nil), func(o *mcpclient.Options) { o.Name = "healthy" })
	healthy.ready()
	req := healthy.request("echo", `{"a":1}`, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var caller sync.WaitGroup
	var calls atomic.Int64
	caller.Go(func() {
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for ; ctx.Err() == nil; <-pace.C {
			begun := time.Now()
			result, err := healthy.Invoke(context.Background(), req)
			if d := time.Since(begun); err != nil || result.Text() != `{"a":1}` || d > most {
				t.Errorf("a call of the healthy server took %v: %v", d, err)
				return
			}
			calls.Add(1)
		}
	})
	stop := func() {
		cancel()
		caller.Wait()
	}
	t.Cleanup(stop)
	f()
	stop()
	if s := healthy.Offer().Status; calls.Load() == 0 || s.Restarts != 0 || s.State != provider.Ready {
		t.Errorf("%d calls of the healthy server succeeded; %+v", calls.Load(), s)
	}
}

// memory is what the heap holds after a collection.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestOneBadCallOverHTTPHarmsNoOther(t *testing.T) {
	server := &faultHTTP{}
	r := startHTTP(t, server, limited)
	r.ready()
	beside(t, func() {
		for _, own := range slices.Sorted(maps.Keys(httpFaults)) {
			want := httpFaults[own].code
			t.Run(own, func(t *testing.T) {
				r := r.on(t)
				deadline := patience
				if want == tool.Timeout {
					deadline = 150 * time.Millisecond
				}
				ctx, cancel := within(t.Context(), deadline)
				defer cancel()
				before, begun := memory(), time.Now()
				result, err := r.Invoke(ctx, r.request(own, "{}", nil))
				if got := tool.CodeOf(err); got != want {
					t.Errorf("code %q (%v), want %q", got, err, want)
				}
				if err == nil && len(result.Text()) != 2<<20 {
					t.Errorf("a result of %d bytes", len(result.Text()))
				}
				result = nil
				if took := time.Since(begun); took > deadline+2*time.Second {
					t.Errorf("it took %v", took)
				}
				r.alive()
				if grown := memory() - before; grown > 32<<20 {
					t.Errorf("%d MiB more are in use", grown>>20)
				}
			})
		}
	})
	if s := r.Offer().Status; s.Restarts != 0 {
		t.Errorf("the connection was rebuilt: %+v", s)
	}
}

// Whatever a server does at whatever step of its start, its operator reads why it is not there, it is found when it is well
// again, and once its tools were known they stay. All faults happen at the same time.
func TestFaultsOfAServerOverHTTPAtEachStepOfItsStart(t *testing.T) {
	for _, step := range []string{"server/discover", "initialize", "tools/list"} {
		t.Run(step, func(t *testing.T) { beside(t, func() { faultsAt(t, step) }) })
	}
}

func faultsAt(t *testing.T, step string) {
	type patient struct {
		*running
		name   string
		server *faultHTTP
		fault  httpFault
		tools  int
	}
	var all []*patient
	for _, name := range slices.Sorted(maps.Keys(httpFaults)) {
		fault := httpFaults[name]
		if !fault.start {
			continue
		}
		p := &patient{name: name, server: &faultHTTP{}, fault: fault.answer}
		p.server.set(step, p.fault)
		p.running = startHTTP(t, p.server, limited, func(o *mcpclient.Options) { o.Name, o.ConnectTimeout = name, time.Second })
		all = append(all, p)
	}
	// Servers that fail at the newest handshake may be taken for older ones, and start.
	works := step == "server/discover"
	for _, p := range all {
		s := p.await(p.name+" to be noticed", func(o *provider.Offer) bool {
			return o.Status.State == provider.Backoff || o.Status.State == provider.Ready
		}).Status
		if s.State == provider.Backoff && s.Reason == "" || s.State == provider.Ready && !works {
			t.Errorf("%s: it is %+v", p.name, s)
		}
	}
	mended := func() {
		for _, p := range all {
			p.server.set("", nil)
		}
		for _, p := range all {
			p.tools = len(p.await(p.name+" to be over", func(o *provider.Offer) bool { return o.Status.State == provider.Ready }).Tools)
			p.alive()
		}
	}
	mended()
	var calls sync.WaitGroup
	for _, p := range all {
		p.server.set(step, p.fault)
		p.server.forget()
		req := p.request("echo", "{}", nil)
		calls.Go(func() {
			ctx, cancel := within(t.Context(), 300*time.Millisecond)
			defer cancel()
			begun := time.Now()
			_, err := p.Invoke(ctx, req)
			if took := time.Since(begun); took > 5*time.Second || err == nil && !works {
				t.Errorf("%s: a call meanwhile took %v: %v", p.name, took, err)
			}
		})
	}
	calls.Wait()
	for _, p := range all {
		if n := len(p.Offer().Tools); n != p.tools {
			t.Errorf("%s: %d of %d tools are left", p.name, n, p.tools)
		}
	}
	mended()
}
