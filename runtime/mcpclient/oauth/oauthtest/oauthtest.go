// Package oauthtest is a real authorization server, and an MCP server that takes its tokens only, for tests of those who
// log in.
package oauthtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Issuer is an authorization server with everything that MCP asks of one: metadata (RFC 8414), registration (RFC 7591),
// authorization codes bound to a PKCE challenge (RFC 7636), resources (RFC 8707), and refresh tokens that work once. It
// fails the test when a client breaks a rule that a lenient server would overlook.
type Issuer struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	life     time.Duration // of access tokens
	audience string        // that tokens get instead of what was asked for; "" gives what was asked for
	clients  map[string]registration
	codes    map[string]grant
	access   map[string]grant
	refresh  map[string]grant
	counts   map[string]int // requests by kind
	broken   bool           // the token endpoint answers 500
}

type registration struct {
	secret    string
	redirects []string
}

type grant struct {
	client, redirect, challenge, resource, audience, scope string
	ends                                                   time.Time
}

// NewIssuer serves an authorization server until the test ends.
func NewIssuer(t testing.TB) *Issuer {
	i := &Issuer{
		t: t, life: time.Hour, clients: map[string]registration{}, codes: map[string]grant{}, access: map[string]grant{},
		refresh: map[string]grant{}, counts: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", i.metadata)
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) metadata(w http.ResponseWriter, _ *http.Request) {
	reply(w, 200, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"registration_endpoint": i.URL + "/register", "response_types_supported": []string{"code"},
		"grant_types_supported":            []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"notes", "admin", "offline_access"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
	})
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var m struct {
		RedirectURIs []string `json:"redirect_uris"`
		GrantTypes   []string `json:"grant_types"`
		Name         string   `json:"client_name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || len(m.RedirectURIs) == 0 || m.Name == "" || !slices.Contains(m.GrantTypes, "refresh_token") {
		i.t.Errorf("registration: %+v, %v", m, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts["register"]++
	id, secret := rand.Text(), rand.Text()
	i.clients[id] = registration{secret, m.RedirectURIs}
	reply(w, 201, map[string]any{
		"client_id": id, "client_secret": secret, "client_secret_expires_at": 0, "redirect_uris": m.RedirectURIs,
		"token_endpoint_auth_method": "client_secret_basic",
	})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts["authorize"]++
	c, ok := i.clients[q.Get("client_id")]
	if !ok || !slices.Contains(c.redirects, q.Get("redirect_uri")) {
		i.t.Errorf("authorize: unknown client or redirect: %v", q)
		http.Error(w, "who?", 400)
		return
	}
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" {
		i.t.Errorf("authorize without PKCE or state: %v", q)
	}
	code := rand.Text()
	i.codes[code] = grant{
		client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
		resource: q.Get("resource"), scope: q.Get("scope"),
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		i.t.Error(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	kind := r.PostForm.Get("grant_type")
	i.counts[kind]++
	if i.broken {
		http.Error(w, "out of order", 500)
		return
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	if c, ok := i.clients[id]; !ok || c.secret != secret {
		reply(w, 401, map[string]string{"error": "invalid_client"})
		return
	}
	var g grant
	ok := false
	switch kind {
	case "authorization_code":
		code := r.PostForm.Get("code")
		g, ok = i.codes[code]
		delete(i.codes, code)
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		ok = ok && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge && r.PostForm.Get("redirect_uri") == g.redirect
	case "refresh_token":
		g, ok = i.refresh[r.PostForm.Get("refresh_token")]
		delete(i.refresh, r.PostForm.Get("refresh_token")) // works once
	case "client_credentials":
		g, ok = grant{client: id, scope: r.PostForm.Get("scope")}, true
	}
	if !ok || g.client != id {
		reply(w, 400, map[string]string{"error": "invalid_grant", "error_description": "no such code or token"})
		return
	}
	if kind != "client_credentials" && (g.resource == "" || r.PostForm.Get("resource") != g.resource) {
		i.t.Errorf("%s for resource %q, asked for %q", kind, r.PostForm.Get("resource"), g.resource)
	}
	g.audience, g.ends = g.resource, time.Now().Add(i.life)
	if i.audience != "" {
		g.audience = i.audience
	}
	access, refresh := "at-"+rand.Text(), "rt-"+rand.Text()
	i.access[access], i.refresh[refresh] = g, g
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.life.Seconds()), "scope": g.scope}
	if kind != "client_credentials" {
		answer["refresh_token"] = refresh
	}
	reply(w, 200, answer)
}

// Forget makes every token of a kind unknown.
func (i *Issuer) Forget(access, refresh bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if access {
		clear(i.access)
	}
	if refresh {
		clear(i.refresh)
	}
}

// SetLife sets how long access tokens live from now on; an hour until then.
func (i *Issuer) SetLife(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life = d
}

// SetBroken makes the token endpoint answer HTTP 500, or work again.
func (i *Issuer) SetBroken(broken bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.broken = broken
}

// SetAudience gives tokens an audience other than the one that was asked for.
func (i *Issuer) SetAudience(audience string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.audience = audience
}

// Register makes a client known that registers nothing itself.
func (i *Issuer) Register(id, secret string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clients[id] = registration{secret: secret}
}

// Count is how many requests of a kind came: "register", "authorize", or a grant type.
func (i *Issuer) Count(kind string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counts[kind]
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err) // a value of ours
	}
}

// Resource is an MCP server that takes tokens of an issuer only, and only those made for it.
type Resource struct {
	*httptest.Server
	// Scope is what calls need; "" for none. It is set before use.
	Scope string
}

// NewResource serves an MCP server with one tool, "read", at /mcp until the test ends.
func NewResource(t testing.TB, i *Issuer) *Resource {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a note"}}}, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s := &Resource{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{i.URL}, "scopes_supported": []string{"notes"}})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		i.mu.Lock()
		g, ok := i.access[token]
		i.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		metadata := fmt.Sprintf("Bearer resource_metadata=%q", s.URL+"/.well-known/oauth-protected-resource/mcp")
		switch {
		case !ok || time.Now().After(g.ends) || g.audience != "" && g.audience != s.URL+"/mcp":
			w.Header().Set("WWW-Authenticate", metadata)
			http.Error(w, "token?", http.StatusUnauthorized)
		case s.Scope != "" && bytes.Contains(body, []byte(`"tools/call"`)) && !slices.Contains(strings.Fields(g.scope), s.Scope):
			w.Header().Set("WWW-Authenticate", metadata+fmt.Sprintf(`, error="insufficient_scope", scope=%q`, s.Scope))
			http.Error(w, "scope?", http.StatusForbidden)
		default:
			handler.ServeHTTP(w, r)
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		for session := range server.Sessions() { // what a client whose token ended could not close
			if err := session.Close(); err != nil {
				t.Log(err)
			}
		}
		s.Close()
	})
	return s
}
