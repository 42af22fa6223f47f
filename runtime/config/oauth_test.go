package config_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/config"
)

// newKey is a private key as a file holds it.
func newKey(t *testing.T) string {
	t.Helper()
	return pemOf(t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func pemOf(t *testing.T) func(crypto.Signer, error) string {
	t.Helper()
	return func(key crypto.Signer, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
}

func TestSigningKeys(t *testing.T) {
	rsaKey := pemOf(t)(rsa.GenerateKey(rand.Reader, 2048))
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	for name, c := range map[string]struct{ key, algorithm, want, fault string }{
		"a key on P-256 signs by ES256":            {newKey(t), "", "ES256", ""},
		"a key on P-384 signs by ES384":            {pemOf(t)(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), "", "ES384", ""},
		"an RSA key signs by RS256":                {rsaKey, "", "RS256", ""},
		"an RSA key signs by PS256 if it shall":    {rsaKey, "PS256", "PS256", ""},
		"an Ed25519 key signs by EdDSA":            {pemOf(t)(edKey, err), "", "EdDSA", ""},
		"an algorithm of another kind":             {rsaKey, "ES256", "", "signs by RS256, RS384, RS512, PS256, PS384, PS512 and not by ES256"},
		"an algorithm of another curve":            {newKey(t), "ES384", "", "P-256, which signs by ES256 and not by ES384"},
		"a key on a curve without an algorithm":    {pemOf(t)(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)), "", "", "signs no JWT"},
		"a text that is no key":                    {"hunter2hunter2", "", "", "must be one PEM text"},
		"a key with something behind it":           {newKey(t) + "more", "", "", "must be one PEM text"},
		"a PEM text that holds something else":     {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("no key")})), "", "", "holds no key"},
		"a key of a format that says another kind": {strings.ReplaceAll(newKey(t), "PRIVATE KEY", "EC PRIVATE KEY"), "", "", "openssl pkcs8"},
	} {
		t.Run(name, func(t *testing.T) {
			signer, algorithm, err := (&config.OAuth{PrivateKey: c.key, SigningAlgorithm: c.algorithm}).SigningKey()
			if c.fault == "" {
				if err != nil || signer == nil || algorithm != c.want {
					t.Errorf("got %q, %v", algorithm, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAKeyIsNeverShown(t *testing.T) {
	key := newKey(t)
	env := fakeEnv(map[string]string{"KEY": key})
	cfg := mustParse(t, "/etc/hermesd/config.hcl", `
mcp_server "ledger" {
  url = "https://ledger.example.com/mcp"
  oauth {
    grant       = "client_credentials"
    client_id   = "hermesd"
    private_key = secret("env:KEY")
  }
}`, env)
	var shown strings.Builder
	if err := cfg.Show(&shown); err != nil {
		t.Fatal(err)
	}
	if line := strings.Split(key, "\n")[1]; strings.Contains(shown.String(), line) || !strings.Contains(shown.String(), `secret("env:KEY")`) {
		t.Errorf("shown:\n%s", shown.String())
	}
	_, diags := config.Parse("/etc/hermesd/config.hcl", []byte(fmt.Sprintf(`
mcp_server "ledger" {
  url = "https://ledger.example.com/mcp"
  oauth {
    grant             = "client_credentials"
    client_id         = "hermesd"
    signing_algorithm = "RS256"
    private_key       = %q
  }
}`, key)), env)
	var said strings.Builder
	if _, err := diags.WriteTo(&said); err != nil {
		t.Fatal(err)
	}
	if line := strings.Split(key, "\n")[1]; strings.Contains(said.String(), line) || !strings.Contains(said.String(), "signs by ES256 and not by RS256") {
		t.Errorf("said:\n%s", said.String())
	}
}
