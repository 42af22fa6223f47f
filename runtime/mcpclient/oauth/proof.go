package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Proofs of possession (RFC 9449, DPoP): a token that is bound to a key is worth nothing to somebody who has only the
// token.

const (
	// proofAlgorithm is the algorithm of every proof. All servers with DPoP that are known take it.
	proofAlgorithm = "ES256"
	// boundToken is the type of a bound token, and the scheme that it is sent with.
	boundToken = "DPoP"
	// proofHeader and nonceHeader carry the proof, and what the server wants to see in the next one.
	proofHeader, nonceHeader = "DPoP", "DPoP-Nonce"
	// needsNonce is the error of a request whose proof lacks the server's nonce.
	needsNonce = "use_dpop_nonce"
	// maxNonce bounds a server's nonce, in bytes.
	maxNonce = 1024
	// maxOrigins bounds how many servers' nonces are kept; there are three or four.
	maxOrigins = 16
)

// proofKey is the key that the tokens of one login are bound to.
type proofKey struct {
	private *ecdsa.PrivateKey
	public  map[string]string // JWK
}

func newProofKey() (*proofKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key for proofs: %w", err)
	}
	return withPublic(private)
}

func withPublic(private *ecdsa.PrivateKey) (*proofKey, error) {
	point, err := private.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	half := (len(point) - 1) / 2
	b64 := base64.RawURLEncoding.EncodeToString
	return &proofKey{private, map[string]string{"kty": "EC", "crv": "P-256", "x": b64(point[1 : 1+half]), "y": b64(point[1+half:])}}, nil
}

// text is the key as it is stored.
func (k *proofKey) text() (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	return base64.StdEncoding.EncodeToString(der), err
}

// parseProofKey reads what text wrote.
func parseProofKey(text string) (*proofKey, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the key of its proofs cannot be read")
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	private, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("the key of its proofs cannot be read")
	}
	return withPublic(private)
}

// thumbprint names the key (RFC 7638).
func (k *proofKey) thumbprint() string {
	return digest(fmt.Sprintf(`{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, k.public["x"], k.public["y"]))
}

// prove makes the proof for one request. token is what is sent with it, "" for none yet.
func (k *proofKey) prove(method string, to *url.URL, token, nonce string) (string, error) {
	at := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath} // without query and fragment (section 4.2)
	claims := jwt.MapClaims{"jti": rand.Text(), "htm": method, "htu": at.String(), "iat": time.Now().Unix()}
	if token != "" {
		claims["ath"] = digest(token)
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	proof := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	proof.Header["typ"], proof.Header["jwk"] = "dpop+jwt", k.public
	return proof.SignedString(k.private)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// nonces are the last nonce of each server, by origin (RFC 9449 sections 8 and 9).
type nonces struct {
	mu   sync.Mutex
	last map[string]string
}

func (n *nonces) of(u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[u.Scheme+"://"+u.Host]
}

// note keeps the nonce of an answer, if there is one.
func (n *nonces) note(u *url.URL, header http.Header) {
	nonce := header.Get(nonceHeader)
	if nonce == "" || len(nonce) > maxNonce || strings.ContainsFunc(nonce, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	server := u.Scheme + "://" + u.Host
	if _, known := n.last[server]; !known && len(n.last) >= maxOrigins {
		clear(n.last)
	}
	if n.last == nil {
		n.last = map[string]string{}
	}
	n.last[server] = nonce
}
