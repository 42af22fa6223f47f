package oauth

import (
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
