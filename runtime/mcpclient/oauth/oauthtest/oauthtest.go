// Package oauthtest is a real authorization server, and an MCP server that takes its tokens only, for tests of those who
// log in.
package oauthtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
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
	counts   map[string]int              // requests by kind
	broken   bool                        // the token endpoint answers 500
	instead  map[string]http.HandlerFunc // answer in the place of "token" and "register"
	keys     map[string]crypto.PublicKey // of clients that sign, by client
	trusted  map[string]crypto.PublicKey // of those whose assertions are taken, by issuer
	used     map[string]bool             // ids of JWTs that were taken
	proofs   *Proofs
}

type registration struct {
	secret    string
	redirects []string
}

type grant struct {
	client, redirect, challenge, resource, audience, scope string
	key                                                    string // thumbprint that the token is bound to, or the code
	ends                                                   time.Time
}

// NewIssuer serves an authorization server until the test ends.
func NewIssuer(t testing.TB) *Issuer {
	i := &Issuer{
		t: t, life: time.Hour, clients: map[string]registration{}, codes: map[string]grant{}, access: map[string]grant{},
		refresh: map[string]grant{}, counts: map[string]int{}, keys: map[string]crypto.PublicKey{}, trusted: map[string]crypto.PublicKey{},
		used: map[string]bool{}, instead: map[string]http.HandlerFunc{},
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
	i.mu.Lock()
	defer i.mu.Unlock()
	m := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"registration_endpoint": i.URL + "/register", "response_types_supported": []string{"code"},
		"grant_types_supported":            []string{"authorization_code", "refresh_token", "client_credentials", jwtBearer},
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"notes", "admin", "offline_access"},
		"token_endpoint_auth_methods_supported":            []string{"client_secret_basic", "client_secret_post", "private_key_jwt", "none"},
		"token_endpoint_auth_signing_alg_values_supported": []string{"ES256", "RS256"},
	}
	if i.proofs != nil && !i.proofs.Silent {
		m["dpop_signing_alg_values_supported"] = []string{"ES256"}
	}
	reply(w, 200, m)
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
	if h := i.instead["register"]; h != nil {
		h(w, r)
		return
	}
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
		resource: q.Get("resource"), scope: q.Get("scope"), key: q.Get("dpop_jkt"),
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
	if h := i.instead["token"]; h != nil {
		h(w, r)
		return
	}
	if i.broken {
		http.Error(w, "out of order", 500)
		return
	}
	key := ""
	if i.proofs != nil {
		if key = i.proofs.token(i.t, w, r, i.URL+"/token"); key == "" {
			return
		}
	}
	id, ok := i.client(r)
	if !ok {
		reply(w, 401, map[string]string{"error": "invalid_client", "error_description": "who is that with " + r.PostForm.Get("client_secret") + "?"})
		return
	}
	g, refusal := i.grant(kind, id, r)
	if refusal != "" || g.client != id || g.key != "" && g.key != key {
		reply(w, 400, map[string]string{"error": "invalid_grant", "error_description": "no such code, token or assertion: " + refusal})
		return
	}
	if g.resource == "" || r.PostForm.Get("resource") != g.resource {
		i.t.Errorf("%s for resource %q, asked for %q", kind, r.PostForm.Get("resource"), g.resource)
	}
	g.audience, g.ends, g.key = g.resource, time.Now().Add(i.life), key
	if i.audience != "" {
		g.audience = i.audience
	}
	access, refresh := "at-"+rand.Text(), "rt-"+rand.Text()
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.life.Seconds()), "scope": g.scope}
	switch {
	case key != "" && i.proofs.Unbound:
		g.key = ""
	case key != "":
		answer["token_type"] = "DPoP"
	}
	if kind == "authorization_code" || kind == "refresh_token" {
		answer["refresh_token"] = refresh
		i.refresh[refresh] = g
	}
	i.access[access] = g
	reply(w, 200, answer)
}

// grant is what a request is worth, or why nothing. The mutex is held.
func (i *Issuer) grant(kind, client string, r *http.Request) (grant, string) {
	form := r.PostForm
	switch kind {
	case "authorization_code":
		g, ok := i.codes[form.Get("code")]
		delete(i.codes, form.Get("code"))
		if !ok || hashOf(form.Get("code_verifier")) != g.challenge || form.Get("redirect_uri") != g.redirect {
			return grant{}, "the code"
		}
		return g, ""
	case "refresh_token":
		g, ok := i.refresh[form.Get("refresh_token")]
		delete(i.refresh, form.Get("refresh_token")) // works once
		if !ok {
			return grant{}, "the refresh token"
		}
		return g, ""
	case "client_credentials":
		return grant{client: client, resource: form.Get("resource"), scope: form.Get("scope")}, ""
	case jwtBearer:
		if err := i.checkAssertion(client, form); err != nil {
			return grant{}, err.Error() + " in " + form.Get("assertion")
		}
		return grant{client: client, resource: form.Get("resource"), scope: form.Get("scope")}, ""
	}
	return grant{}, "the grant type"
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

// SetToken has a handler answer in the token endpoint's place.
func (i *Issuer) SetToken(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.instead["token"] = h
}

// SetRegister has a handler answer in the registration endpoint's place.
func (i *Issuer) SetRegister(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.instead["register"] = h
}

// SetProofs has tokens bound to a key from now on (RFC 9449).
func (i *Issuer) SetProofs(p *Proofs) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.proofs = p
}

// RegisterRedirect lets a known client's logins come back to an address.
func (i *Issuer) RegisterRedirect(id, address string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.clients[id]
	c.redirects = append(c.redirects, address)
	i.clients[id] = c
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
	// Bound is set before use for a server that takes tokens with a proof only.
	Bound bool
	// Issuer is what the metadata name as the authorization server, Names what they are of; "" for what is right.
	Issuer, Names string
}

// scheme is what tokens are sent with.
func (s *Resource) scheme() string {
	if s.Bound {
		return "DPoP"
	}
	return "Bearer"
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
		m := map[string]any{"resource": cmp.Or(s.Names, s.URL+"/mcp"), "authorization_servers": []string{cmp.Or(s.Issuer, i.URL)}, "scopes_supported": []string{"notes"}}
		if s.Bound {
			m["dpop_bound_access_tokens_required"] = true
		}
		reply(w, 200, m)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		i.mu.Lock()
		g, ok := i.access[token]
		proofs := i.proofs
		i.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		metadata := fmt.Sprintf("%s resource_metadata=%q", s.scheme(), s.URL+"/.well-known/oauth-protected-resource/mcp")
		switch {
		case !ok || time.Now().After(g.ends) || g.audience != s.URL+"/mcp" || s.Bound && g.key == "":
			w.Header().Set("WWW-Authenticate", metadata)
			http.Error(w, "token?", http.StatusUnauthorized)
		case g.key == "" && scheme != "Bearer":
			t.Errorf("a token without key came with the scheme %q", scheme)
		case g.key != "" && !proofs.resource(t, w, r, &request{scheme: scheme, token: token, key: g.key, url: s.URL + "/mcp", metadata: metadata}):
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
