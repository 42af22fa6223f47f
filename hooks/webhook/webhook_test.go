package webhook_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/hooks/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, url string) *webhook.Client {
	t.Helper()
	c, err := webhook.New(&webhook.Options{URL: url, Secret: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // only then does the server notice that its client has gone
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestADeliveryIsSignedAndNamed(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		stamp, err := strconv.ParseInt(r.Header.Get("X-Hermesd-Timestamp"), 10, 64)
		if err != nil || time.Since(time.Unix(stamp, 0)) > time.Minute {
			t.Errorf("timestamp %q", r.Header.Get("X-Hermesd-Timestamp"))
		}
		delivery := r.Header.Get("X-Hermesd-Delivery")
		want := webhook.Sign([]byte("s3cret"), r.Header.Get("X-Hermesd-Timestamp"), delivery, string(body))
		if r.Header.Get("X-Hermesd-Signature") != want || r.Header.Get("X-Hermesd-Event") != "pre_call" || delivery == "" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with %v", r.Method, r.Header)
		}
		w.Header().Set("X-Hermesd-Signature", webhook.Sign([]byte("s3cret"), "answer", delivery, "yes"))
		io.WriteString(w, "yes") //nolint:errcheck // the test sees what arrives
	})
	c := client(t, url)
	r, err := c.Post(t.Context(), "pre_call", []byte(`{"a":1}`))
	if err != nil || string(r.Body) != "yes" || !c.Signed(r) {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, change := range map[string]func(*webhook.Reply){
		"its body":      func(r *webhook.Reply) { r.Body = []byte("yep") },
		"its delivery":  func(r *webhook.Reply) { r.Delivery = "other" },
		"its signature": func(r *webhook.Reply) { r.Header = http.Header{} },
	} {
		other := *r
		if change(&other); c.Signed(&other) {
			t.Errorf("an answer counts as signed with %s changed", name)
		}
	}
}

// TestSignIsTheHMACOfTheJoinedParts uses a value computed with another tool:
// printf '1700000000.abc.{}' | openssl dgst -sha256 -hmac key
func TestSignIsTheHMACOfTheJoinedParts(t *testing.T) {
	const want = "sha256=5b0ed6a1c8da1ca2b44c3493245ec6b1f8b9cf1dc9cfc6cac3f44b488f289e52"
	if got := webhook.Sign([]byte("key"), "1700000000", "abc", "{}"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatReceiversDo(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	var ids [2]string
	for name, tt := range map[string]struct {
		answer func(n int32, w http.ResponseWriter, r *http.Request)
		tries  int32
		err    string
	}{
		"a server that fails twice": {func(_ int32, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, 2, "answered 502 Bad Gateway (tried twice)"},
		"a server that fails once": {func(n int32, w http.ResponseWriter, r *http.Request) {
			ids[n-1] = r.Header.Get("X-Hermesd-Delivery")
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			} else if ids[0] != ids[1] {
				t.Error("the second try is another delivery")
			}
		}, 2, ""},
		"a connection that breaks": {func(int32, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 2, "EOF (tried twice)"},
		"a refusal":                {func(_ int32, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, 1, "answered 403 Forbidden"},
		"a redirect": {func(_ int32, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}, 1, "a redirect (307), which is not followed"},
		"an answer that never ends": {func(_ int32, w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, 1, "over 1048576 bytes"},
		"an answer that breaks off": {func(_ int32, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "{") //nolint:errcheck // as above
		}, 1, "broke off its answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			url := serve(t, func(w http.ResponseWriter, r *http.Request) { tt.answer(n.Add(1), w, r) })
			_, err := client(t, url+"/?token=hidden").Post(t.Context(), "pre_call", []byte("{}"))
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
			if n.Load() != tt.tries {
				t.Errorf("%d tries, want %d", n.Load(), tt.tries)
			}
		})
	}
}

func TestNobodyListensAtTheAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, "http://"+addr).Post(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "refused (tried twice)") {
		t.Errorf("%v", err)
	}
}

func TestASilentReceiverIsLeftWhenTheTimeIsOver(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := client(t, url).Post(ctx, "x", []byte("{}")); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestOnlySafeAddressesAreTaken(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://example.com/hook":       true,
		"http://127.0.0.1:8080/":         true,
		"http://[::1]/":                  true,
		"http://localhost/":              true,
		"http://example.com/":            false,
		"http://127.0.0.1.example.com/":  false,
		"ftp://example.com/":             false,
		"https://":                       false,
		"/hook":                          false,
		"":                               false,
		"https://user:pass@example.com/": false,
		"https://exa mple.com/":          false,
	} {
		if _, err := webhook.New(&webhook.Options{URL: url}); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		} else if err != nil && strings.Contains(err.Error(), "pass@") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
