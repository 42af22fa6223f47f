package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// faultSSE is an MCP server that has only HTTP with SSE (2024-11-05), written by hand so that it can misbehave in a call as the
// tool's name says. open, if set, answers the GET in place of the stream.
type faultSSE struct {
	mu      sync.Mutex
	open    httpFault
	streams map[string]*eventsOf // by session
	next    int
}

// eventsOf is the stream of one session. What is sent on it is written as it is; closing the channel cuts it off.
type eventsOf struct {
	out  chan string
	gone <-chan struct{}
	once sync.Once
}

func (e *eventsOf) send(text string) bool {
	select {
	case e.out <- text:
		return true
	case <-e.gone:
		return false
	}
}

func (e *eventsOf) message(format string, args ...any) bool {
	return e.send("event: message\ndata: " + fmt.Sprintf(format, args...) + "\n\n")
}

func (e *eventsOf) cut() { e.once.Do(func() { close(e.out) }) }

func (f *faultSSE) set(open httpFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = open
}

func (f *faultSSE) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		f.stream(w, r)
		return
	}
	f.mu.Lock()
	events := f.streams[r.URL.Query().Get("session")]
	f.mu.Unlock()
	if r.URL.Path != "/messages" {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m rpc
	if err != nil || json.Unmarshal(body, &m) != nil || events == nil {
		http.Error(w, "no", http.StatusNotFound)
		return
	}
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`
	case "ping":
		result = `{}`
	case "tools/list":
		list := []string{`{"name":"echo","inputSchema":{"type":"object"}}`}
		for name := range sseFaults {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		result = `{"tools":[` + strings.Join(list, ",") + `]}`
	case "tools/call":
		json.Unmarshal(m.Params, &p)
		if fault, ok := sseFaults[p.Name]; ok {
			fault.call(w, r, &m, events)
			return
		}
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, p.Arguments)
	}
	w.WriteHeader(http.StatusAccepted)
	if result != "" {
		events.message(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}

func (f *faultSSE) stream(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	open := f.open
	events := &eventsOf{out: make(chan string), gone: r.Context().Done()}
	f.next++
	session := fmt.Sprint(f.next)
	if f.streams == nil {
		f.streams = map[string]*eventsOf{}
	}
	f.streams[session] = events
	f.mu.Unlock()
	if open != nil {
		open(w, r, &rpc{})
		return
	}
	stream(w)
	fmt.Fprintf(w, "event: endpoint\ndata: /messages?session=%s\n\n", session)
	w.(http.Flusher).Flush()
	for {
		select {
		case text, ok := <-events.out:
			if !ok {
				panic(http.ErrAbortHandler)
			}
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

type sseCall func(w http.ResponseWriter, r *http.Request, m *rpc, events *eventsOf)

// posted turns a fault of the POST into one of a call.
func posted(fault httpFault) sseCall {
	return func(w http.ResponseWriter, r *http.Request, m *rpc, _ *eventsOf) { fault(w, r, m) }
}

// streamed accepts the POST and sends something on the stream; in it ID is the request's.
func streamed(texts ...string) sseCall {
	return func(w http.ResponseWriter, _ *http.Request, m *rpc, events *eventsOf) {
		w.WriteHeader(http.StatusAccepted)
		w.(http.Flusher).Flush()
		for _, text := range texts {
			events.send(strings.ReplaceAll(text, "ID", string(m.ID)))
		}
	}
}

// severed is streamed, and the end of the stream.
func severed(texts ...string) sseCall {
	return func(w http.ResponseWriter, r *http.Request, m *rpc, events *eventsOf) {
		streamed(texts...)(w, r, m, events)
		events.cut()
	}
}

// flooded repeats an event on the stream for a while, and then answers.
func flooded(event string) sseCall {
	return func(w http.ResponseWriter, _ *http.Request, m *rpc, events *eventsOf) {
		w.WriteHeader(http.StatusAccepted)
		w.(http.Flusher).Flush()
		many := strings.Repeat(event, 100)
		for range 300 {
			events.send(many)
		}
		events.message(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, m.ID)
	}
}

const sseAnswer = `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}` + "\n\n"

// sseFaults are the ways in which such a server can answer a call badly, what becomes of the call, and whether the connection
// has to be made anew.
var sseFaults = map[string]struct {
	call    sseCall
	code    tool.Code // "" for a call that succeeds
	rebuilt bool
}{
	"the_post_is_never_answered": {posted(hang("", "")), tool.Timeout, false},
	"the_post_is_cut_off":        {posted(cut("", "")), tool.OutcomeUnknown, false},
	"the_post_gets_500":          {posted(status(http.StatusInternalServerError)), tool.OutcomeUnknown, false},
	"the_post_gets_503":          {posted(status(http.StatusServiceUnavailable)), tool.DownstreamFailed, false},
	"the_post_gets_429":          {posted(status(http.StatusTooManyRequests)), tool.DownstreamFailed, false},
	"the_post_gets_401":          {posted(status(http.StatusUnauthorized)), tool.DownstreamFailed, false},
	"nothing_comes":              {streamed(), tool.Timeout, false},
	"garbage_comes":              {streamed("data: {garbage\n\n", "\x00\n\n", "event: novelty\ndata: x\n\n", sseAnswer), "", false},
	"half_a_json_comes":          {streamed(`data: {"jsonrpc":"2.0","id":ID,"result":{` + "\n\n"), tool.Timeout, false},
	"it_comes_twice":             {streamed(sseAnswer, sseAnswer), "", false},
	"another_answer_comes":       {streamed(`data: {"jsonrpc":"2.0","id":77,"result":{}}` + "\n\n"), tool.Timeout, false},
	"log_lines_flood":            {flooded(logEvent), "", false},
	"garbage_floods":             {flooded("data: {garbage\n\n"), "", false},
	"pings_flood":                {flooded(`data: {"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n\n"), "", false},
	"questions_flood":            {flooded(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}` + "\n\n"), "", false},
	"list_changes_flood":         {flooded(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n"), "", false},
	"two_mebibytes":              {streamed(`data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + `"}]}}` + "\n\n"), "", false},
	"more_than_the_limit":        {streamed(`data: {"jsonrpc":"2.0","id":ID,"result":"` + strings.Repeat("x", 3<<20)), tool.ResultTooLarge, true},
	"the_stream_is_cut":          {severed(), tool.OutcomeUnknown, true},
	"the_stream_is_cut_halfway":  {severed(`data: {"jsonrpc":"2.0","id":ID,`), tool.OutcomeUnknown, true},
}

func TestOneBadCallOverSSEHarmsNoOther(t *testing.T) {
	server := &faultSSE{}
	r := startHTTP(t, server, limited)
	known := len(r.ready().Tools)
	beside(t, func() {
		for _, own := range slices.Sorted(maps.Keys(sseFaults)) {
			fault := sseFaults[own]
			t.Run(own, func(t *testing.T) {
				r := r.on(t)
				for begun := time.Now(); fault.rebuilt && time.Since(begun) < 1100*time.Millisecond; { // what breaks sooner is left alone for a while
					r.alive()
				}
				restarts := r.Offer().Status.Restarts
				deadline := patience
				if fault.code == tool.Timeout {
					deadline = 150 * time.Millisecond
				}
				ctx, cancel := within(t.Context(), deadline)
				defer cancel()
				before := memory()
				result, err := r.Invoke(ctx, r.request(own, "{}", nil))
				if got := tool.CodeOf(err); got != fault.code {
					t.Errorf("code %q (%v), want %q", got, err, fault.code)
				}
				if err == nil && result.Text() != "done" && len(result.Text()) != 2<<20 {
					t.Errorf("got %s", bounded(result.Text(), 100))
				}
				r.alive()
				if s := r.Offer(); (s.Status.Restarts > restarts) != fault.rebuilt || len(s.Tools) != known {
					t.Errorf("it has %d tools and is %+v", len(s.Tools), s.Status)
				}
				if grown := memory() - before; grown > 32<<20 {
					t.Errorf("%d MiB more are in use", grown>>20)
				}
			})
		}
	})
}

func TestFaultsOfTheStreamOverSSE(t *testing.T) {
	faults := map[string]httpFault{
		"its headers never come":             hang("", ""),
		"its endpoint never comes":           hang(eventStream, ""),
		"half of its endpoint comes":         hang(eventStream, "event: endpoint\ndata: /mess"),
		"it ends before the endpoint":        whole(eventStream, ""),
		"it is cut before the endpoint":      cut(eventStream, ": comment\n\n"),
		"it is no stream":                    whole("text/html", "<html>"),
		"it fails":                           status(http.StatusBadGateway),
		"it floods without an endpoint":      endlessly(eventStream, "", logEvent),
		"it is one event without an end":     endlessly(eventStream, "event: endpoint\ndata: ", "x"),
		"it is a bomb":                       bomb(eventStream, "event: endpoint\ndata: "),
		"its endpoint leads nowhere":         hang(eventStream, "event: endpoint\ndata: /nowhere\n\n"),
		"its endpoint is no address":         hang(eventStream, "event: endpoint\ndata: :%\n\n"),
		"it names an endpoint and is silent": hang(eventStream, "event: endpoint\ndata: /messages?session=none\n\n"),
	}
	type patient struct {
		*running
		name   string
		server *faultSSE
	}
	beside(t, func() {
		var all []*patient
		for name, fault := range faults {
			p := &patient{name: name, server: &faultSSE{open: fault}}
			p.running = startHTTP(t, p.server, limited, func(o *mcpclient.Options) { o.Name, o.ConnectTimeout = name, time.Second })
			all = append(all, p)
		}
		for _, p := range all {
			s := p.await(p.name+" to be noticed", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff }).Status
			if s.Reason == "" {
				t.Errorf("%s: it is %+v", p.name, s)
			}
		}
		for _, p := range all {
			p.server.set(nil)
		}
		for _, p := range all {
			p.await(p.name+" to be over", func(o *provider.Offer) bool { return o.Status.State == provider.Ready })
			p.alive()
		}
	})
}
