package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://a.example","token_endpoint":"https://a.example/token"}`), true)
	f.Add([]byte(`{"issuer":"https://a.example@b.example","token_endpoint":"http://localhost/token"}`), true)
	f.Fuzz(func(t *testing.T, data []byte, own bool) {
		m := &metadata{}
		if json.Unmarshal(data, m) != nil || m.check("https://a.example", own) != nil {
			return
		}
		u, err := url.Parse(m.Issuer)
		if err != nil || u.Scheme != "https" || u.Host != "a.example" {
			t.Errorf("taken: %q", m.Issuer)
		}
	})
}

func FuzzAssertion(f *testing.F) {
	f.Add("eyJhbGciOiJub25lIn0.eyJhdWQiOiJhIiwiZXhwIjo0MDAwMDAwMDAwfQ.")
	f.Add("eyJhbGciOiJFUzI1NiJ9.eyJhdWQiOlsiYSIsImIiXX0.AA")
	f.Add("eyJhbGciOiJub25lIn0.eyJhdWQiOiJhIiwi\nZXhwIjo0MDAwMDAwMDAwfQ.")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Assertion{Text: text}.read("assertion", time.Unix(1_800_000_000, 0))
		switch {
		case err != nil && len(strings.TrimSpace(text)) > 40 && strings.Contains(err.Error(), strings.TrimSpace(text)):
			t.Errorf("the error shows it: %v", err)
		case err == nil && strings.ContainsAny(got.text, " \r\n&"):
			t.Errorf("taken: %q", got.text)
		}
	})
}

func FuzzProofKey(f *testing.F) {
	key, err := newProofKey()
	if err != nil {
		f.Fatal(err)
	}
	text, err := key.text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("AAAA")
	at := &url.URL{Scheme: "https", Host: "a.example", Path: "/mcp"}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseProofKey(text)
		if err != nil {
			return
		}
		if _, err := key.prove("POST", at, "token", "nonce"); err != nil {
			t.Error(err)
		}
	})
}

func FuzzChallenge(f *testing.F) {
	f.Add(`DPoP error="use_dpop_nonce", Bearer scope="a b", error="insufficient_scope"`, "n-1")
	f.Add(`Bearer resource_metadata="https://a.example`, "a\x00b")
	at := &url.URL{Scheme: "https", Host: "a.example"}
	f.Fuzz(func(t *testing.T, header, nonce string) {
		h := http.Header{"Www-Authenticate": {header}, "Dpop-Nonce": {nonce}}
		challenged(&http.Response{StatusCode: http.StatusUnauthorized, Header: h})
		MissingScope(h)
		var n nonces
		n.note(at, h)
		if strings.ContainsAny(n.of(at), "\x00\r\n \"") || len(n.of(at)) > maxNonce {
			t.Errorf("kept: %q", n.of(at))
		}
	})
}
