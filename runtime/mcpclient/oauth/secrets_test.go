package oauth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

func TestTheTokensThatAreHeldAreToldToWhoMasksThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var told []string
	a, err := oauth.New(&oauth.Options{Name: "pages", Server: "https://example.com/mcp", File: path, OnSecrets: func(held []string) {
		told = append(told, strings.Join(held, " "))
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{
		`{"access_token":"access-1","refresh_token":"refresh-1","client_secret":"client-1","expires":"2999-01-01T00:00:00Z"}`,
		`{"access_token":"access-02","expires":"2999-01-01T00:00:00Z","identity":{"id_token":"id-2","refresh_token":"login-2"}}`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is told once
			if _, err := a.Token(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"access-1 refresh-1 client-1 ", "access-02    id-2 login-2 access-1 refresh-1 client-1 "}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +told):\n%s", diff)
	}
}
