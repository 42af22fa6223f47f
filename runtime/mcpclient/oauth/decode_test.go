package oauth

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte("token\n"))
	f.Add([]byte(`{"access_token":"a","refresh_token":"b","expires":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"access_token":"","identity":{"id_token":"a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := parse(data); err == nil && c.Access == "" && c.Refresh == "" && c.Identity == nil {
			t.Error("no token, no login and no error")
		}
	})
}

func FuzzTokenAnswer(f *testing.F) {
	f.Add(200, []byte(`{"access_token":"a","expires_in":3600,"token_type":"Bearer"}`))
	f.Add(400, []byte(`{"error":"invalid_grant"}`))
	f.Add(200, []byte(`{"access_token":"a","expires_in":"99999999999999999999"}`))
	f.Add(200, []byte(`{"access_token":"a","token_type":"DPoP","issued_token_type":"x","id_token":"y"}`))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, data []byte) {
		answer, err := readAnswer(status, data, []string{"secret"})
		if err != nil {
			return
		}
		next, err := (&Credentials{Access: "old", Refresh: "r"}).next(answer, now)
		if err == nil && (next.Access == "" || next.Refresh == "" || next.Type != "" || !next.Expires.IsZero() && !next.Expires.After(now)) {
			t.Errorf("got %+v", next)
		}
	})
}

func FuzzRegistration(f *testing.F) {
	f.Add(201, []byte(`{"client_id":"a","client_secret":"b","token_endpoint_auth_method":"client_secret_post"}`))
	f.Add(400, []byte(`{"error":"invalid_redirect_uri","error_description":"no"}`))
	f.Add(201, []byte(`{"client_secret":"b`))
	f.Fuzz(func(t *testing.T, status int, data []byte) {
		r, err := readRegistration(status, data)
		if err == nil && r.ClientID == "" || err != nil && len(err.Error()) > 3*maxSaid {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestTheNoncesOfAFewServersAreKept(t *testing.T) {
	var n nonces
	at := func(i int) *url.URL { return &url.URL{Scheme: "https", Host: fmt.Sprint(i, ".example.com")} }
	note := func(i int) { n.note(at(i), http.Header{http.CanonicalHeaderKey(nonceHeader): {"n"}}) }
	for i := range maxOrigins {
		note(i)
	}
	note(0) // another nonce of a server that is known
	if len(n.last) != maxOrigins {
		t.Errorf("%d are kept, want %d", len(n.last), maxOrigins)
	}
	note(maxOrigins)
	if len(n.last) > maxOrigins || n.of(at(maxOrigins)) != "n" {
		t.Errorf("%d are kept, the last one is %q", len(n.last), n.of(at(maxOrigins)))
	}
}
