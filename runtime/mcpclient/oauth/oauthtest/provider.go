package oauthtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Provider is a company's identity provider: people log in (OpenID Connect), and it exchanges their ID tokens for grants at
// other authorization servers (RFC 8693), for one client.
type Provider struct {
	*httptest.Server
	t   testing.TB
	key *ecdsa.PrivateKey

	// ClientID and Secret are the client's registration. Grantee is who it is at the other authorization servers. They are set
	// before use.
	ClientID, Secret, Grantee string

	mu      sync.Mutex
	codes   map[string]url.Values // what was asked for
	refresh map[string]bool
	life    time.Duration
	refuses bool
	issued  string
	counts  map[string]int
}

// NewProvider serves an identity provider until the test ends.
func NewProvider(t testing.TB) *Provider {
	p := &Provider{
		t: t, key: NewKey(t), ClientID: "desk", Secret: "idp-secret", Grantee: "robot",
		codes: map[string]url.Values{}, refresh: map[string]bool{}, life: time.Hour, issued: typeIDJAG, counts: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{ // without PKCE in it, as some have it
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"scopes_supported": []string{"openid", "offline_access"},
		})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// NewKey makes a key on P-256.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Public is the key that it signs with.
func (p *Provider) Public() crypto.PublicKey { return p.key.Public() }

// SetLife sets how long ID tokens live from now on; an hour until then.
func (p *Provider) SetLife(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life = d
}

// Refuse has it exchange nothing from now on; its answer repeats the ID token.
func (p *Provider) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = true
}

// SetIssued has it say that what it gives is of another type.
func (p *Provider) SetIssued(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issued = kind
}

// Forget makes every refresh token unknown.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.refresh)
}

// Count is how many requests of a grant type came.
func (p *Provider) Count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[kind]
}

// IDToken is a person's, as if they had logged in.
func (p *Provider) IDToken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idToken()
}

func (p *Provider) idToken() string {
	return Sign(p.t, p.key, "JWT", jwt.MapClaims{"iss": p.URL, "sub": "ada", "aud": p.ClientID, "exp": time.Now().Add(p.life).Unix()})
}

// Sign makes a JWT by ES256 that has a time and an id.
func Sign(t testing.TB, key *ecdsa.PrivateKey, typ string, claims jwt.MapClaims) string {
	claims["iat"], claims["jti"] = time.Now().Unix(), rand.Text()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["typ"] = typ
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != p.ClientID || q.Get("scope") != "openid offline_access" || q.Get("code_challenge") == "" || q.Has("resource") {
		p.t.Errorf("a login with %v", q)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	form := r.PostForm
	kind := form.Get("grant_type")
	p.counts[kind]++
	if id, secret, ok := r.BasicAuth(); !ok || id != p.ClientID || secret != p.Secret {
		reply(w, 401, map[string]string{"error": "invalid_client"})
		return
	}
	switch kind {
	case "authorization_code":
		if asked := p.codes[form.Get("code")]; asked == nil || hashOf(form.Get("code_verifier")) != asked.Get("code_challenge") {
			reply(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
	case "refresh_token":
		known := p.refresh[form.Get("refresh_token")]
		delete(p.refresh, form.Get("refresh_token")) // works once
		if !known {
			reply(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
	case tokenExchange:
		p.exchange(w, form)
		return
	}
	refresh := "idp-" + rand.Text()
	p.refresh[refresh] = true
	reply(w, 200, map[string]any{"access_token": "unused-" + rand.Text(), "token_type": "Bearer", "id_token": p.idToken(), "refresh_token": refresh})
}

// exchange is RFC 8693 as the extension profiles it.
func (p *Provider) exchange(w http.ResponseWriter, form url.Values) {
	subject := form.Get("subject_token")
	_, err := jwt.Parse(subject, func(*jwt.Token) (any, error) { return p.key.Public(), nil },
		jwt.WithAudience(p.ClientID), jwt.WithIssuer(p.URL), jwt.WithExpirationRequired(), jwt.WithValidMethods([]string{"ES256"}))
	switch {
	case p.refuses:
		reply(w, 400, map[string]string{"error": "access_denied", "error_description": "not for you, with " + subject})
		return
	case err != nil:
		reply(w, 400, map[string]string{"error": "invalid_grant", "error_description": err.Error()})
		return
	case form.Get("requested_token_type") != typeIDJAG || form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:id_token" ||
		form.Get("audience") == "" || form.Get("resource") == "":
		p.t.Errorf("an exchange with %v", form)
	}
	grant := Sign(p.t, p.key, "oauth-id-jag+jwt", jwt.MapClaims{
		"iss": p.URL, "sub": "ada", "aud": form.Get("audience"), "resource": form.Get("resource"), "client_id": p.Grantee,
		"exp": time.Now().Add(time.Minute).Unix(),
	})
	reply(w, 200, map[string]any{"access_token": grant, "issued_token_type": p.issued, "token_type": "N_A", "expires_in": 60})
}
