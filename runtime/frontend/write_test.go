package frontend_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend"
)

// serve runs a server on one connection and gives its other end to do.
func serve(t *testing.T, h http.HandlerFunc, do func(t *testing.T, client net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn, 1)}
		server := frontend.NewHTTPServer(h, nil)
		ended := make(chan error)
		go func() { ended <- server.Serve(l) }()
		client, conn := net.Pipe() // which holds nothing: each Write waits for a Read
		l.conns <- conn
		do(t, client)
		client.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-ended
		synctest.Wait()
	})
}

func ask(t *testing.T, client net.Conn, headers ...string) {
	t.Helper()
	if _, err := fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", strings.Join(headers, "")); err != nil {
		t.Fatal(err)
	}
}

func TestAClientThatNeverReadsItsAnswerHoldsNobody(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter) error{
		"a large answer": func(w http.ResponseWriter) error {
			_, err := w.Write(make([]byte, 1<<20))
			return err
		},
		"a stream of events": func(w http.ResponseWriter) error {
			for {
				if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
					return err
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var failed chan error
			var took time.Duration
			serve(t, func(w http.ResponseWriter, r *http.Request) {
				begun := time.Now()
				err := write(w)
				took = time.Since(begun)
				failed <- err
				<-r.Context().Done() // what runs for this client ends, too
			}, func(t *testing.T, client net.Conn) {
				failed = make(chan error, 1)
				ask(t, client)
				if err := <-failed; err == nil {
					t.Error("it was written")
				}
				if took > 31*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestAnswersThatAreReadAreNeverCut(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter)
		size   int
		pause  time.Duration // before each KiB is read
	}{
		"a large one that is read slowly": {func(w http.ResponseWriter) {
			w.Write(make([]byte, 1<<20))
		}, 1 << 20, 300 * time.Millisecond}, // five minutes in all
		"one with hours between its parts": {func(w http.ResponseWriter) {
			for range 3 {
				io.WriteString(w, "data: x\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(3 * time.Hour)
			}
		}, 27, 0},
		"one whose beginning is sent with its end": {func(w http.ResponseWriter) {
			io.WriteString(w, "begun ")
			time.Sleep(time.Hour)
			io.WriteString(w, "ended")
			time.Sleep(time.Hour)
		}, 11, 0},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) }, func(t *testing.T, client net.Conn) {
				ask(t, client)
				r, err := http.ReadResponse(bufio.NewReaderSize(client, 16), nil)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for buf := make([]byte, 1<<10); err == nil; {
					var m int
					time.Sleep(tt.pause)
					m, err = io.ReadFull(r.Body, buf)
					n += m
				}
				if n != tt.size {
					t.Errorf("read %d of %d bytes: %v", n, tt.size, err)
				}
			})
		})
	}
}

func TestAConnectionIsUsedAgainLongAfterAnAnswer(t *testing.T) {
	serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}, func(t *testing.T, client net.Conn) {
		in := bufio.NewReader(client)
		for range 2 {
			ask(t, client, "Content-Length: 2\r\n", "Expect: 100-continue\r\n")
			if r, err := http.ReadResponse(in, nil); err != nil || r.StatusCode != http.StatusContinue {
				t.Fatalf("%v %v", r, err)
			}
			if _, err := io.WriteString(client, "hi"); err != nil {
				t.Fatal(err)
			}
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "hi" {
				t.Fatalf("%s %v", body, err)
			}
			time.Sleep(100 * time.Second)
		}
	})
}

func BenchmarkTimedWrite(b *testing.B) {
	done := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := frontend.NewHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := []byte("data: x\n\n")
		for b.Loop() {
			w.Write(line)
		}
		close(done)
	}), nil)
	go server.Serve(l)
	defer server.Close()
	r, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Body.Close()
	io.Copy(io.Discard, r.Body)
	<-done
}
