package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each way in which a login comes to nothing says what the server answered and what is left to do, and not to do what has
// just failed.
func TestALoginThatLeadsNowhereSaysWhatIsLeft(t *testing.T) {
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mcp" {
				http.NotFound(w, r)
				return
			}
			w.WriteHeader(code)
		})
	}
	closed := func(register bool) func(*httptest.Server) http.Handler {
		return func(s *httptest.Server) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/mcp", status(http.StatusUnauthorized))
			mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
				m := map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/a", "token_endpoint": s.URL + "/t", "code_challenge_methods_supported": []string{"S256"}}
				if register {
					m["registration_endpoint"] = s.URL + "/r"
				}
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(m); err != nil {
					t.Error(err)
				}
			})
			mux.HandleFunc("/r", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
			return mux
		}
	}
	answers := func(code int) func(*httptest.Server) http.Handler {
		return func(*httptest.Server) http.Handler { return status(code) }
	}
	tests := map[string]struct {
		server   func(*httptest.Server) http.Handler
		keys     string
		want     []string
		test     string // what mcp-server test says
		nextStep string // what it must not say
	}{
		"no authorization server": {server: answers(http.StatusUnauthorized),
			want: []string{"HTTP 404", "ask the server's owner", `Authorization = "Bearer ${secret("env:NAME")}"`}, test: "HTTP 401"},
		"an authorization server that registers nobody": {server: closed(false),
			want: []string{"lets no client register itself", "write client_id into oauth"}, test: "HTTP 401"},
		"an authorization server that does not register hermesd": {server: closed(true),
			want: []string{"HTTP 403", "write client_id into the block's oauth", "ask the server's owner"}, test: "HTTP 401"},
		"nobody of this account": {server: answers(http.StatusForbidden),
			want: []string{"HTTP 403", "ask the server's owner", "another Authorization"}, test: "HTTP 403", nextStep: "mcp-server login"},
		"a header that is wrong": {server: answers(http.StatusUnauthorized), keys: `headers = { Authorization = "Bearer ${secret("env:REFUSED_TOKEN")}" }`,
			want: []string{"HTTP 401", "correct it, or remove it to log in"}, test: "HTTP 401"},
	}
	t.Setenv("REFUSED_TOKEN", "token-that-is-refused")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(nil)
			server.Start()
			defer server.Close()
			server.Config.Handler = test.server(server)
			dir := t.TempDir()
			config := filepath.Join(dir, "hermesd.hcl")
			text := fmt.Sprintf("state_dir = %q\nmcp_server \"notes\" {\n  url = \"%s/mcp\"\n  %s\n}\n", filepath.Join(dir, "state"), server.URL, test.keys)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if code := execute(context.Background(), []string{"mcp-server", "test", "notes", "-c", config}, nil, &out, &out); code != exitFailure || !strings.Contains(out.String(), test.test) {
				t.Errorf("the test: %d %s", code, out.String())
			}
			if test.nextStep != "" && strings.Contains(out.String(), test.nextStep) {
				t.Errorf("the test advises what cannot help: %s", out.String())
			}
			out.Reset()
			if code := execute(context.Background(), []string{"mcp-server", "login", "notes", "-c", config}, nil, &out, &out); code != exitFailure {
				t.Errorf("the login: %d", code)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("want %q in: %s", want, out.String())
				}
			}
			if test.nextStep != "" && strings.Contains(out.String(), test.nextStep) {
				t.Errorf("the login advises what cannot help: %s", out.String())
			}
		})
	}
}
