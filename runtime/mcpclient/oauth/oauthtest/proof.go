package oauthtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Proofs is a pair of servers whose tokens are bound to keys (RFC 9449).
type Proofs struct {
	// Silent servers do not say so in the authorization server's metadata.
	Silent bool
	// Unbound servers look at the proof and give a token that anybody may use.
	Unbound bool
	// Nonces, if set, are what each server wants to see in a proof: "token" and "resource". Nonces that change with each
	// request, and so are never right, begin with "*".
	Nonces map[string]string

	mu   sync.Mutex
	used map[string]bool
	seen int
}

// Seen is how many good proofs came.
func (p *Proofs) Seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// token checks the proof of a token request, and answers one that is not good. It returns the key's thumbprint.
func (p *Proofs) token(t testing.TB, w http.ResponseWriter, r *http.Request, url string) string {
	proof, err := p.check(r, url, "")
	switch {
	case err != nil:
		t.Errorf("the proof of a token request: %v", err)
		reply(w, 400, map[string]string{"error": "invalid_dpop_proof"})
		return ""
	case p.nonce(w, "token", proof):
		reply(w, 400, map[string]string{"error": "use_dpop_nonce"})
		return ""
	}
	return proof.key
}

// request is a request with a bound token.
type request struct{ scheme, token, key, url, metadata string }

// resource checks the proof of a request, and answers one that is not good.
func (p *Proofs) resource(t testing.TB, w http.ResponseWriter, r *http.Request, req *request) bool {
	proof, err := p.check(r, req.url, req.token)
	if err == nil && (req.scheme != "DPoP" || proof.key != req.key) {
		err = fmt.Errorf("scheme %q, key %q, want %q", req.scheme, proof.key, req.key)
	}
	if err != nil {
		t.Errorf("the proof of a request: %v", err)
		http.Error(w, "proof?", http.StatusUnauthorized)
		return false
	}
	if p.nonce(w, "resource", proof) {
		w.Header().Set("WWW-Authenticate", req.metadata+`, DPoP error="use_dpop_nonce"`)
		http.Error(w, "nonce?", http.StatusUnauthorized)
		return false
	}
	return true
}

// nonce reports whether the proof lacks the server's nonce, and tells it then.
func (p *Proofs) nonce(w http.ResponseWriter, server string, proof *proofClaims) bool {
	want := p.Nonces[server]
	if want == "" || want == proof.Nonce {
		return false
	}
	if want[0] == '*' {
		want = fmt.Sprintf("%s-%d", want[1:], p.Seen())
	}
	w.Header().Set("DPoP-Nonce", want)
	return true
}

type proofClaims struct {
	jwt.RegisteredClaims
	Method string `json:"htm"`
	URL    string `json:"htu"`
	Hash   string `json:"ath"`
	Nonce  string `json:"nonce"`
	key    string
}

// check is RFC 9449 section 4.3.
func (p *Proofs) check(r *http.Request, url, token string) (*proofClaims, error) {
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		return nil, fmt.Errorf("%d proofs", len(proofs))
	}
	claims := &proofClaims{}
	parsed, err := jwt.ParseWithClaims(proofs[0], claims, func(t *jwt.Token) (any, error) {
		key, thumbprint, err := publicKey(t.Header["jwk"])
		claims.key = thumbprint
		return key, err
	}, jwt.WithValidMethods([]string{"ES256"}))
	if err != nil {
		return nil, err
	}
	hash := ""
	if token != "" {
		hash = hashOf(token)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case parsed.Header["typ"] != "dpop+jwt":
		return nil, fmt.Errorf("typ %v", parsed.Header["typ"])
	case claims.Method != r.Method || claims.URL != url:
		return nil, fmt.Errorf("it is for %s %s", claims.Method, claims.URL)
	case claims.IssuedAt == nil || time.Since(claims.IssuedAt.Time).Abs() > time.Minute:
		return nil, errors.New("it is not of now")
	case claims.ID == "" || p.used[claims.ID]:
		return nil, errors.New("it was used before, or has no id")
	case claims.Hash != hash:
		return nil, errors.New("it is for another token")
	}
	if p.used == nil {
		p.used = map[string]bool{}
	}
	p.used[claims.ID] = true
	p.seen++
	return claims, nil
}

// publicKey reads a JWK on P-256, and names it (RFC 7638).
func publicKey(jwk any) (*ecdsa.PublicKey, string, error) {
	m, ok := jwk.(map[string]any)
	if !ok || m["kty"] != "EC" || m["crv"] != "P-256" || len(m) != 4 {
		return nil, "", fmt.Errorf("jwk %v", jwk)
	}
	x, errX := base64.RawURLEncoding.DecodeString(fmt.Sprint(m["x"]))
	y, errY := base64.RawURLEncoding.DecodeString(fmt.Sprint(m["y"]))
	if err := errors.Join(errX, errY); err != nil {
		return nil, "", err
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	return key, hashOf(fmt.Sprintf(`{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, m["x"], m["y"])), err
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
