package config

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// minRSA is the smallest modulus of a key that signs, in bits (RFC 7518 section 3.3).
const minRSA = 2048

// signingKey reads a private key, and settles what it signs by (RFC 7518): the algorithm asked for, "" for the usual one of
// the key's kind.
func signingKey(text, algorithm string) (crypto.Signer, string, error) {
	if text == "" {
		return nil, "", nil
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PRIVATE KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, "", errors.New("private_key must be one PEM text of type PRIVATE KEY (PKCS #8), without a passphrase; `openssl pkcs8 -topk8 -nocrypt` makes one of other kinds")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, "", errors.New("private_key is of type PRIVATE KEY and holds no key that can be read")
	}
	signer, can, kind := crypto.Signer(nil), []string(nil), ""
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		signer, kind = k, "a key on "+k.Curve.Params().Name
		can = map[int][]string{256: {"ES256"}, 384: {"ES384"}, 521: {"ES512"}}[k.Curve.Params().BitSize]
	case *rsa.PrivateKey:
		signer, kind = k, "an RSA key"
		can = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		if n := k.N.BitLen(); n < minRSA {
			return nil, "", fmt.Errorf("private_key is an RSA key of %d bits; %d are the least", n, minRSA)
		}
	case ed25519.PrivateKey:
		signer, kind, can = k, "an Ed25519 key", []string{"EdDSA"}
	}
	switch {
	case len(can) == 0:
		return nil, "", errors.New("private_key is of a kind that signs no JWT; use a key on P-256, an RSA key or an Ed25519 key")
	case algorithm == "":
		return signer, can[0], nil
	case !slices.Contains(can, algorithm):
		return nil, "", fmt.Errorf("private_key is %s, which signs by %s and not by %s", kind, strings.Join(can, ", "), algorithm)
	}
	return signer, algorithm, nil
}
