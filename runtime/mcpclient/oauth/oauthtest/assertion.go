package oauthtest

import (
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	jwtBearer     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDJAG     = "urn:ietf:params:oauth:token-type:id-jag"
)

// RegisterKey makes a client known that signs instead of sending a secret.
func (i *Issuer) RegisterKey(id string, key crypto.PublicKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[id] = key
}

// Trust takes assertions that iss signs with the key (RFC 7523 section 2.1).
func (i *Issuer) Trust(iss string, key crypto.PublicKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.trusted[iss] = key
}

// client says who asks, and whether that is proven (RFC 6749 section 2.3, RFC 7523 section 2.2). The mutex is held.
func (i *Issuer) client(r *http.Request) (string, bool) {
	if id, secret, ok := r.BasicAuth(); ok {
		c, known := i.clients[id]
		return id, known && c.secret == secret
	}
	id := r.PostForm.Get("client_id")
	if proof := r.PostForm.Get("client_assertion"); proof != "" {
		claims, err := i.verify(proof, i.keys[id])
		ok := err == nil && claims.Issuer == id && claims.Subject == id && r.PostForm.Get("client_secret") == "" &&
			r.PostForm.Get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
		if !ok {
			i.t.Logf("client assertion: %+v, %v", claims, err)
		}
		return id, ok
	}
	c, known := i.clients[id]
	if !known { // a public client may present an assertion, which says who it is
		return id, r.PostForm.Get("grant_type") == jwtBearer
	}
	return id, c.secret == r.PostForm.Get("client_secret")
}

// verify checks a JWT that must be for this issuer and for one use.
func (i *Issuer) verify(text string, key crypto.PublicKey) (*jwt.RegisteredClaims, error) {
	if key == nil {
		return nil, errors.New("nobody has that key")
	}
	claims := &jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{"ES256", "RS256"}), jwt.WithAudience(i.URL), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	switch {
	case err != nil:
		return claims, err
	case len(claims.Audience) != 1:
		return claims, errors.New("it is for others, too")
	case claims.ID == "" || i.used[claims.ID]:
		return claims, errors.New("it was used before, or has no id")
	case claims.ExpiresAt.Sub(claims.IssuedAt.Time) > time.Hour:
		return claims, errors.New("it lives too long")
	}
	i.used[claims.ID] = true
	return claims, nil
}

// checkAssertion checks a grant that another issuer has signed.
func (i *Issuer) checkAssertion(client string, form url.Values) error {
	text := form.Get("assertion")
	var seen struct {
		jwt.RegisteredClaims
		Client   string `json:"client_id"`
		Resource string `json:"resource"`
	}
	parsed, _, err := jwt.NewParser().ParseUnverified(text, &seen)
	if err != nil {
		return err
	}
	if _, err := i.verify(text, i.trusted[seen.Issuer]); err != nil {
		return err
	}
	if strings.EqualFold(fmt.Sprint(parsed.Header["typ"]), "oauth-id-jag+jwt") && (seen.Client != client || seen.Resource != form.Get("resource")) {
		return fmt.Errorf("it is for client %q and resource %q", seen.Client, seen.Resource)
	}
	return nil
}
