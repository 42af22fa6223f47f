package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// handedOver is what a test does with a request that is handed to the SDK.
type handedOver struct {
	sdk     http.Handler
	server  *Server
	session string
	ended   chan struct{} // the call has
}

// Whatever becomes of a request that is handed over: its call runs once and to its end, nothing waits for ever, and its id
// is free again.
func TestACallRunsOnceWhateverBecomesOfItsRequest(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t_tells","_meta":{"progressToken":"p"}}}`
	for name, c := range map[string]struct {
		becomes func(*handedOver, http.ResponseWriter, *http.Request)
		quiet   bool // it is handed over for its time
		answer  string
	}{
		"the SDK takes it": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			h.sdk.ServeHTTP(w, r)
		}, false, `"done"`},
		"the SDK refuses it": {func(_ *handedOver, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no room", http.StatusServiceUnavailable)
		}, false, "no room"},
		"the SDK refuses it when the call has ended": {func(h *handedOver, w http.ResponseWriter, _ *http.Request) {
			<-h.ended
			http.Error(w, "no room", http.StatusServiceUnavailable)
		}, true, "no room"},
		"the SDK takes it when the call has ended": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			<-h.ended
			h.sdk.ServeHTTP(w, r)
		}, true, `"done"`},
		"the SDK fails": {func(*handedOver, http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, false, ""},
		"the SDK answers it without beginning it": {func(h *handedOver, _ http.ResponseWriter, r *http.Request) {
			if err := h.server.events.Append(r.Context(), h.session, "s", []byte(`{"jsonrpc":"2.0","id":7,"error":{"code":0,"message":"x"}}`)); err != nil {
				t.Error(err)
			}
		}, false, ""},
		"the SDK begins it twice": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(strings.NewReader(strings.Replace(call, `"id":7`, `"id":8`, 1)))
			h.sdk.ServeHTTP(w, r)
			h.sdk.ServeHTTP(w, again)
		}, false, errNotHere.Error()},
		"it is of another session": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			other := httptest.NewRecorder()
			begin := post(r.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, "")
			h.sdk.ServeHTTP(other, begin.WithContext(r.Context()))
			session := r.Header.Get(sessionHeader)
			r.Header.Set(sessionHeader, other.Header().Get(sessionHeader))
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			h.sdk.ServeHTTP(w, r)
			r.Header.Set(sessionHeader, session)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			h.sdk.ServeHTTP(w, r)
		}, false, errNotHere.Error()},
		"its session ends first": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			s, _ := h.server.events.of("desk", h.session)
			s.stop()
			synctest.Wait()
			h.sdk.ServeHTTP(w, r)
		}, false, "cancelled"},
		"the SDK's session is closed first": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			s, _ := h.server.events.of("desk", h.session)
			go s.client.Close() //nolint:errcheck // the answer tells
			synctest.Wait()
			h.sdk.ServeHTTP(w, r)
		}, false, "session not found"},
		"its client goes away": {func(h *handedOver, w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			h.sdk.ServeHTTP(w, r.WithContext(ctx))
		}, false, "prime"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				p := providertest.New("t", providertest.Tool{
					Definition: tool.Definition{Name: "t_tells", Coldness: tool.Core},
					Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
						defer close(ended)
						if c.quiet {
							time.Sleep(time.Second)
						} else {
							req.Host.Progress(tool.Progress{Done: 1})
						}
						return tool.TextResult("done"), ctx.Err()
					},
				})
				w := frontendtest.New(t, p)
				s, err := New(&Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
				if err != nil {
					t.Fatal(err)
				}
				h := &handedOver{server: s, ended: ended}
				front := s.router().(*router)
				h.sdk = front.withSessions
				front.withSessions = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get(adoptionHeader) == "" {
						h.sdk.ServeHTTP(w, r)
						return
					}
					c.becomes(h, w, r)
				})
				handler := s.options.Gate.Handler(front)
				send := func(body string) *httptest.ResponseRecorder {
					defer func() {
						if r := recover(); r != nil && r != http.ErrAbortHandler {
							panic(r)
						}
					}()
					rec := httptest.NewRecorder()
					handler.ServeHTTP(rec, post(context.Background(), body, h.session))
					return rec
				}
				h.session = send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`).Header().Get(sessionHeader)
				live, _ := s.events.of("desk", h.session)
				got := send(call)
				if failed := got == nil; failed != (name == "the SDK fails") || !failed && !strings.Contains(got.Body.String(), c.answer) {
					t.Errorf("got %+v", got)
				}
				<-ended
				synctest.Wait()
				if ran := len(p.Calls()); ran != 1 {
					t.Errorf("%d calls ran", ran)
				}
				if n, left := len(live.calls.open.open), len(live.calls.handed); live.base.Err() == nil && n+left > 0 {
					t.Errorf("%d requests are open, %d calls wait to be taken over", n, left)
				}
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The SDK does not answer at all with a result that does not marshal, and a request that is not answered stays open.
func TestACallThatPanicsAnswersTheRequestThatWasHandedOver(t *testing.T) {
	ids := newExactIDs()
	calls := newSessionCalls(ids)
	c := newSessionCall(t.Context(), nil, &liveSession{ids: ids, calls: calls, base: t.Context()}, &plainCall{id: []byte("7")})
	if err := calls.open.begin(c.key, &c.request); err != nil {
		t.Fatal(err)
	}
	if !calls.handOver(c) {
		t.Fatal("not handed over")
	}
	close(c.served)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic") // for it has no server
			}
		}()
		calls.run(c, nil)
	}()
	if result, err := c.adopt(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("got %v, %v", result, err)
	}
}

func post(ctx context.Context, body, session string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+frontendtest.Token)
	if session != "" {
		r.Header.Set(sessionHeader, session)
		r.Header.Set(versionHeader, lastWithSessions)
	}
	return r
}

func TestASessionHasAThousandOpenRequestsAtMost(t *testing.T) {
	s := newSessionCalls(newExactIDs())
	ping := func(ids ...int) []byte {
		var all []string
		for _, id := range ids {
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		}
		return []byte("[" + strings.Join(all, ",") + "]")
	}
	for id := range maxOpen - 1 {
		if _, _, err := s.begin(ping(id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, id, err := s.begin(ping(maxOpen, maxOpen+1)); !errors.Is(err, errManyOpen) || string(id) != fmt.Sprint(maxOpen+1) {
		t.Errorf("two more: %s, %v", id, err)
	}
	begun, _, err := s.begin(ping(maxOpen, maxOpen)) // which is one
	if err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	if _, id, err := s.begin(ping(1.0)); !errors.Is(err, errIDInUse) {
		t.Errorf("an id in use: %s, %v", id, err)
	} else if turnAway(w, id, err); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "duplicate") {
		t.Errorf("HTTP %d: %s", w.Code, w.Body)
	}
	s.drop(begun)
	s.sent([]byte(`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage"}`)) // the SDK's own: no answer
	s.sent([]byte(`{"jsonrpc":"2.0","id":5,"result":{}}`))
	if _, _, err := s.begin(ping(5, maxOpen+1)); err != nil {
		t.Error(err)
	}
}
