package frontend_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
)

func TestSessionsOfClientsThatNameNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s frontend.Sessions
		first := s.ID("desk", "", "cli")
		if !strings.HasPrefix(first, "desk/") {
			t.Errorf("not the agent's: %q", first)
		}
		time.Sleep(29 * time.Minute)
		if got := s.ID("desk", "", "cli"); got != first {
			t.Errorf("another session after 29 minutes: %q, %q", first, got)
		}
		time.Sleep(29 * time.Minute)
		if got := s.ID("desk", "", "cli"); got != first {
			t.Error("a session that is used ends")
		}
		if s.ID("desk", "", "editor") == first || s.ID("other", "", "cli") == first {
			t.Error("another client or agent shares it")
		}
		time.Sleep(30 * time.Minute)
		if s.ID("desk", "", "cli") == first {
			t.Error("it did not end after 30 idle minutes")
		}
	})
}

func TestSessionNamesAreCleanAndBounded(t *testing.T) {
	var s frontend.Sessions
	if got := s.ID("desk", "a b\n\x1b[31mc", ""); got != "desk/ab[31mc" {
		t.Errorf("got %q", got)
	}
	if got := s.ID("desk", strings.Repeat("x", 1000), ""); len(got) > 150 {
		t.Errorf("%d bytes", len(got))
	}
	for i := range 5000 {
		s.ID("desk", "", fmt.Sprint(i))
	}
	if first := s.ID("desk", "", "4999"); first != s.ID("desk", "", "4999") {
		t.Error("the newest was dropped")
	}
}

func TestAnAllowedPageGetsCORS(t *testing.T) {
	w := frontendtest.New(t)
	gate := frontend.NewGate(w.Agents, &frontend.GateOptions{AllowedOrigins: []string{"https://desk.example.com"}, AllowedHosts: []string{"hermes.example.com"}})
	h := gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, frontend.AgentOf(r.Context()).Name)
	}))
	request := func(method string, header map[string]string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://hermes.example.com/mcp", nil)
		r.Header.Set("Origin", "https://desk.example.com")
		for k, v := range header {
			r.Header.Set(k, v)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	preflight := request("OPTIONS", map[string]string{"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"})
	if preflight.Code != 204 || preflight.Header().Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight: HTTP %d %v", preflight.Code, preflight.Header())
	}
	got := request("POST", map[string]string{"Authorization": "Bearer " + frontendtest.Token})
	if got.Code != 200 || got.Body.String() != "desk" || got.Header().Get("Access-Control-Allow-Origin") != "https://desk.example.com" {
		t.Errorf("HTTP %d %s %v", got.Code, got.Body, got.Header())
	}
	if got := request("POST", nil); got.Code != 401 {
		t.Errorf("without a token, from nowhere: HTTP %d", got.Code)
	}
}

// A connection of the daemon's own user needs no token; that of another user does. The second needs root to test.
func TestPeerOfALoopbackConnection(t *testing.T) {
	w := frontendtest.New(t)
	h := frontend.NewGate(w.Agents, nil).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, frontend.AgentOf(r.Context()).Name)
	}))
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			hs := httptest.NewUnstartedServer(nil)
			hs.Config = frontend.NewHTTPServer(h, nil)
			l, err := listen(network)
			if err != nil {
				t.Skip("no such network here: ", err)
			}
			hs.Listener.Close()
			hs.Listener = l
			hs.Start()
			defer hs.Close()
			resp, err := hs.Client().Get(hs.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("uid %d: HTTP %d", os.Getuid(), resp.StatusCode)
			}
		})
	}
}

func listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

func TestTextIsCutBetweenCharacters(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		most int
		want string
	}{
		"shorter than the limit": {"aé", 3, "aé"},
		"at a boundary":          {"aéb", 3, "aé"},
		"inside a character":     {"aéb", 2, "a"},
		"inside the first":       {"é", 1, ""},
		"no UTF-8 at all":        {"\xbf\xbf\xbf", 2, ""},
	} {
		if got := frontend.Clip(tt.text, tt.most); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
