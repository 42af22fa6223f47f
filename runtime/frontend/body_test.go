package frontend_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
)

// pipes is a listener whose connections stay in the process, so that time can be synthetic.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.conns) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7433} }

func TestABodyThatNeverComesHoldsNoConnection(t *testing.T) {
	reads := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		length  int
	}{
		"small, and the handler reads it":      {reads, 1000},
		"large, and the handler reads it":      {reads, 16 << 20},
		"and the handler does not look at it":  {func(http.ResponseWriter, *http.Request) {}, 1000},
		"and no handler knows the path at all": {http.NotFound, 1000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn, 1)}
				server := frontend.NewHTTPServer(tt.handler, nil)
				var served sync.WaitGroup
				served.Go(func() {
					if err := server.Serve(l); err != http.ErrServerClosed {
						t.Error(err)
					}
				})
				client, conn := net.Pipe()
				l.conns <- conn
				begun := time.Now()
				if _, err := fmt.Fprintf(client, "POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\nabc", tt.length); err != nil {
					t.Fatal(err)
				}
				if err := client.SetReadDeadline(begun.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(client); err != nil {
					t.Errorf("not closed: %v", err)
				}
				if took := time.Since(begun); took > 31*time.Second {
					t.Errorf("closed after %v", took)
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				served.Wait()
			})
		})
	}
}

func TestAnAnswerMayStreamLongerThanItsBodyMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn, 1)}
		server := frontend.NewHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			select {
			case <-time.After(time.Hour):
				io.WriteString(w, "done") // a failure shows at the client
			case <-r.Context().Done():
				t.Error("the request was cancelled")
			}
		}), nil)
		var served sync.WaitGroup
		served.Go(func() {
			if err := server.Serve(l); err != http.ErrServerClosed {
				t.Error(err)
			}
		})
		client, conn := net.Pipe()
		l.conns <- conn
		if _, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "done" {
			t.Errorf("%q, %v", body, err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		served.Wait()
	})
}

func TestABodyThatIsTooLargeIsRefusedUnread(t *testing.T) {
	w := frontendtest.New(t)
	h := frontend.NewGate(w.Agents, &frontend.GateOptions{MaxBody: 1 << 20}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("it reached the front end")
	}))
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", unread{t})
	r.ContentLength = 1<<20 + 1
	r.Header.Set("Authorization", "Bearer "+frontendtest.Token)
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusRequestEntityTooLarge || !strings.Contains(recorder.Body.String(), "max_request_bytes") {
		t.Errorf("HTTP %d: %s", recorder.Code, recorder.Body)
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestLargeBodiesShareTheirRoom(t *testing.T) {
	const maxBody = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		w := frontendtest.New(t)
		hold := make(chan struct{})
		h := frontend.NewGate(w.Agents, &frontend.GateOptions{MaxBody: maxBody}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
		post := func(token string, length int64) int {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", strings.NewReader("x"))
			r.ContentLength = length
			r.Header.Set("Authorization", "Bearer "+token)
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			return recorder.Code
		}
		var running sync.WaitGroup
		passes := func(what, token string, length int64) {
			running.Go(func() {
				if code := post(token, length); code != http.StatusOK {
					t.Errorf("%s: HTTP %d", what, code)
				}
			})
		}
		for range 7 {
			passes("a large one", frontendtest.Token, maxBody)
		}
		passes("one of unknown length, which may be the largest", frontendtest.Token, -1)
		passes("a small one", frontendtest.Token, 1000)
		synctest.Wait()
		if code := post(frontendtest.Token, maxBody); code != http.StatusServiceUnavailable {
			t.Errorf("the agent's 9th large one: HTTP %d", code)
		}
		passes("another agent's large one", frontendtest.OtherToken, maxBody)
		passes("one that waits for room", frontendtest.Token, maxBody)
		synctest.Wait()
		close(hold)
		running.Wait()
	})
}

func TestABodyThatWasReadKeepsTheRoomThatItNeeds(t *testing.T) {
	const maxBody = 1 << 20
	tests := map[string]struct {
		size int  // of each chunked body
		fits bool // seventeen of one agent
	}{
		"a small one keeps none":                       {100, true},
		"a middling one keeps its size":                {100 << 10, true},
		"the largest keep theirs, and are too many":    {maxBody, false},
		"half of the largest are as many as there are": {maxBody / 2, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := frontendtest.New(t)
				hold := make(chan struct{})
				h := frontend.NewGate(w.Agents, &frontend.GateOptions{MaxBody: maxBody}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						t.Error(err)
					}
					<-hold
				}))
				codes := make(chan int, 17)
				for range cap(codes) {
					go func() {
						r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", io.MultiReader(strings.NewReader(strings.Repeat("x", tt.size))))
						r.Header.Set("Authorization", "Bearer "+frontendtest.Token)
						recorder := httptest.NewRecorder()
						h.ServeHTTP(recorder, r)
						codes <- recorder.Code
					}()
				}
				time.Sleep(time.Minute) // of the bubble: whoever waits for room has given up
				close(hold)
				refused := 0
				for range cap(codes) {
					if <-codes != http.StatusOK {
						refused++
					}
				}
				if (refused == 0) != tt.fits {
					t.Errorf("%d of %d were refused", refused, cap(codes))
				}
			})
		})
	}
}

func TestChunkedRequestsThatWaitForAHumanHoldUpNoOtherAgent(t *testing.T) {
	w := frontendtest.New(t)
	waiting, approved := make(chan struct{}), make(chan struct{})
	gate := frontend.NewGate(w.Agents, nil).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if frontend.AgentOf(r.Context()).Name == "desk" {
			waiting <- struct{}{}
			<-approved
		}
	}))
	hs := httptest.NewUnstartedServer(gate)
	hs.Config = frontend.NewHTTPServer(gate, nil)
	hs.Start()
	defer hs.Close()
	post := func(token string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hs.URL, io.MultiReader(strings.NewReader(`{"name":"x"}`))) // of a length that is not told
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := hs.Client().Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: HTTP %d", token, resp.StatusCode)
		}
	}
	var desk sync.WaitGroup
	for range 16 {
		desk.Go(func() { post(frontendtest.Token) })
	}
	for range 16 {
		<-waiting
	}
	post(frontendtest.OtherToken)
	close(approved)
	desk.Wait()
}
