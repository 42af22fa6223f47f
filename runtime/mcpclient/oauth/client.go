package oauth

import (
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// How a client proves itself at a token endpoint (RFC 7591 section 2).
const (
	secretInForm   = "client_secret_post"
	secretInHeader = "client_secret_basic"
	signedProof    = "private_key_jwt"
	noProof        = "none"
)

const (
	// assertionLife is how long a signed proof of the client is good. It is used at once.
	assertionLife = 2 * time.Minute
	// clientAssertion is the type of a signed proof (RFC 7523 section 2.2).
	clientAssertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// SigningKey signs for a client that is registered with a public key instead of a secret.
type SigningKey struct {
	Signer crypto.Signer
	// Algorithm is the JWS algorithm: ES256, ES384, ES512, RS256, RS384, RS512, PS256, PS384, PS512 or EdDSA.
	Algorithm string
	// ID is the key's id in the client's key set, "" for none.
	ID string
}

// client is as whom tokens are asked for.
type client struct {
	id, secret string
	key        *SigningKey
	method     string
}

// registered is the client of a registration that the operator has made; its method is what the server takes of what there
// is to prove it with.
func registered(id, secret string, key *SigningKey, server *metadata) (*client, error) {
	c := &client{id: id, secret: secret, key: key}
	switch {
	case key != nil:
		c.method = signedProof
		if len(server.AuthAlgorithms) > 0 && !slices.Contains(server.AuthAlgorithms, key.Algorithm) {
			return nil, fmt.Errorf("the authorization server takes signatures by %v, and the key signs by %s; set signing_algorithm, or register a key of another kind", server.AuthAlgorithms, key.Algorithm)
		}
	case secret == "":
		c.method = noProof
	default:
		if c.method = pick(server.AuthMethods, secretInForm, secretInHeader); c.method == "" {
			c.method = secretInHeader // RFC 8414 section 2: what holds where nothing is said
		}
	}
	return c, nil
}

// prove adds the client and its proof to a request. audience is the authorization server's issuer: a proof for its token
// endpoint could be passed on to another server that has the same one (draft-ietf-oauth-rfc7523bis).
func (c *client) prove(form url.Values, header http.Header, audience string) error {
	switch c.method {
	case secretInHeader:
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(c.id), url.QueryEscape(c.secret))
		return nil
	case secretInForm:
		form.Set("client_secret", c.secret)
	case signedProof:
		if c.key == nil {
			return errors.New("the login was made with a key that the configuration no longer has; log in again")
		}
		proof, err := c.key.sign(jwt.MapClaims{"iss": c.id, "sub": c.id, "aud": audience}, assertionLife)
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", clientAssertion)
		form.Set("client_assertion", proof)
	}
	if c.id != "" {
		form.Set("client_id", c.id)
	}
	return nil
}

// sign makes a JWT that is good from now for some time, and for one use.
func (k *SigningKey) sign(claims jwt.MapClaims, life time.Duration) (string, error) {
	method := jwt.GetSigningMethod(k.Algorithm)
	if method == nil {
		return "", fmt.Errorf("the signing algorithm %q is not known", k.Algorithm)
	}
	now := time.Now()
	claims["iat"], claims["exp"], claims["jti"] = now.Unix(), now.Add(life).Unix(), rand.Text()
	token := jwt.NewWithClaims(method, claims)
	if k.ID != "" {
		token.Header["kid"] = k.ID
	}
	signed, err := token.SignedString(k.Signer)
	if err != nil {
		return "", fmt.Errorf("signing with the client's key: %w", err)
	}
	return signed, nil
}
