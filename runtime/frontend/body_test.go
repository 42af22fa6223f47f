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
		post := func(length int64) int {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", strings.NewReader("x"))
			r.ContentLength = length
			r.Header.Set("Authorization", "Bearer "+frontendtest.Token)
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			return recorder.Code
		}
		var running sync.WaitGroup
		for range 15 {
			running.Go(func() { post(maxBody) })
		}
		running.Go(func() { post(-1) }) // its length is not known: it may be the largest
		running.Go(func() {
			if code := post(1000); code != http.StatusOK {
				t.Errorf("a small one: HTTP %d", code)
			}
		})
		synctest.Wait()
		if code := post(maxBody); code != http.StatusServiceUnavailable {
			t.Errorf("the 17th large one: HTTP %d", code)
		}
		waiting := make(chan int)
		go func() { waiting <- post(maxBody) }()
		synctest.Wait()
		close(hold)
		if code := <-waiting; code != http.StatusOK {
			t.Errorf("one that waits for room: HTTP %d", code)
		}
		running.Wait()
	})
}
