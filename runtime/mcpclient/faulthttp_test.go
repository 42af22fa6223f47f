package mcpclient_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient"
)

// faultHTTP is an MCP server over streamable HTTP (2025-06-18), written by hand so that it can misbehave. Whatever request
// the step names, a method or a tool, is answered by the fault. It has a GET stream that says nothing.
type faultHTTP struct {
	mu      sync.Mutex
	step    string
	fault   httpFault
	session int // the current one; requests of another are answered 404
	asked   map[string]int
}

// httpFault answers a request in a way that it should not be answered.
type httpFault func(w http.ResponseWriter, r *http.Request, m *rpc)

// set makes a step go wrong from now on; "" mends the server.
func (f *faultHTTP) set(step string, fault httpFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.step, f.fault = step, fault
}

// forget ends all sessions, as a restart of the server does.
func (f *faultHTTP) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session++
}

// times is how often something was asked for.
func (f *faultHTTP) times(step string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[step]
}

func (f *faultHTTP) faultOf(step string) (httpFault, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[step]++
	if f.step != step {
		return nil, strconv.Itoa(f.session)
	}
	return f.fault, strconv.Itoa(f.session)
}

// tools are those of the server over HTTP: one that works, and one for each fault of a call.
func (f *faultHTTP) tools() string {
	list := []string{`{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`}
	for name := range httpFaults {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (f *faultHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		stream(w)
		<-r.Context().Done()
		return
	case http.MethodDelete:
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m rpc
	if json.Unmarshal(body, &m) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	step := m.Method
	if step == "tools/call" && json.Unmarshal(m.Params, &p) == nil && p.Name != "echo" {
		step = p.Name
	}
	fault, session := f.faultOf(step)
	if given := r.Header.Get("Mcp-Session-Id"); given != "" && given != session {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if fault != nil {
		fault(w, r, &m)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch m.Method {
	case "server/discover":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
	case "initialize":
		w.Header().Set("Mcp-Session-Id", session)
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"faulty","version":"1"}}`)
	case "ping":
		answer(`{}`)
	case "tools/list":
		answer(`{"tools":` + f.tools() + `}`)
	case "tools/call":
		if bad, ok := httpFaults[p.Name]; ok {
			bad.answer(w, r, &m)
			return
		}
		answer(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, p.Arguments))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

// startHTTP runs a provider of a server over HTTP.
func startHTTP(t testing.TB, h http.Handler, change ...func(*mcpclient.Options)) *running {
	t.Helper()
	o := mcpclient.Options{URL: serve(t, h).URL, Parallel: true}
	for _, c := range change {
		c(&o)
	}
	return start(t, o)
}

// status answers with an HTTP status, and headers in pairs.
func status(code int, headers ...string) httpFault {
	return func(w http.ResponseWriter, _ *http.Request, _ *rpc) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		http.Error(w, "not now", code)
	}
}

// cut sends the beginning of an answer and closes the connection.
func cut(kind, text string) httpFault {
	return func(w http.ResponseWriter, _ *http.Request, _ *rpc) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// hang sends the beginning of an answer and nothing else until the client goes.
func hang(kind, text string) httpFault {
	return func(w http.ResponseWriter, r *http.Request, _ *rpc) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// whole sends a text as the whole answer; in it ID is the request's.
func whole(kind, text string) httpFault {
	return func(w http.ResponseWriter, _ *http.Request, m *rpc) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, strings.ReplaceAll(text, "ID", string(m.ID)))
	}
}

// endlessly repeats a text until the client goes.
func endlessly(kind, before, text string) httpFault {
	return func(w http.ResponseWriter, r *http.Request, m *rpc) {
		w.Header().Set("Content-Type", kind)
		many := strings.Repeat(strings.ReplaceAll(text, "ID", string(m.ID)), 1+4096/len(text))
		_, err := io.WriteString(w, strings.ReplaceAll(before, "ID", string(m.ID)))
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(w, many)
		}
	}
}

// bomb sends an endless answer that is small on the wire.
func bomb(kind, before string) httpFault {
	return func(w http.ResponseWriter, r *http.Request, m *rpc) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, err := io.WriteString(z, strings.ReplaceAll(before, "ID", string(m.ID)))
		zeros := []byte(strings.Repeat("0", 1<<16))
		for err == nil && r.Context().Err() == nil {
			_, err = z.Write(zeros)
		}
	}
}

// slowly answers after a while, whoever still waits.
func slowly(after time.Duration) httpFault {
	return func(w http.ResponseWriter, r *http.Request, m *rpc) {
		select {
		case <-r.Context().Done():
		case <-time.After(after):
			whole("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`)(w, r, m)
		}
	}
}
