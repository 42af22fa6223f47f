package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhereMetadataAre(t *testing.T) {
	for issuer, want := range map[string][]string{
		"https://a.example":           {"https://a.example/.well-known/oauth-authorization-server", "https://a.example/.well-known/openid-configuration"},
		"https://a.example/":          {"https://a.example/.well-known/oauth-authorization-server", "https://a.example/.well-known/openid-configuration"},
		"http://127.0.0.1:80":         {"http://127.0.0.1:80/.well-known/oauth-authorization-server", "http://127.0.0.1:80/.well-known/openid-configuration"},
		"https://a.example/t/1":       {"https://a.example/.well-known/oauth-authorization-server/t/1", "https://a.example/.well-known/openid-configuration/t/1", "https://a.example/t/1/.well-known/openid-configuration"},
		"http://a.example":            nil,
		"http://127.0.0.1.evil.test/": nil,
		"javascript:alert(1)":         nil,
		"":                            nil,
	} {
		got, err := metadataURLs(issuer)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v\n%s", issuer, err, diff)
		}
	}
}

func TestWhoseMetadataAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		issuer, says, token string
		own, ok             bool
	}{
		"its own":                                       {"https://a.example", "https://a.example", "https://a.example/token", false, true},
		"its own, with a slash":                         {"https://a.example", "https://a.example/", "https://a.example/token", false, true},
		"another's":                                     {"https://a.example", "https://b.example", "https://a.example/token", false, false},
		"one below the same origin":                     {"https://a.example", "https://a.example/oauth", "https://a.example/token", false, false},
		"2025-03-26: one below the same origin":         {"https://a.example", "https://a.example/oauth", "https://a.example/token", true, true},
		"2025-03-26: another's":                         {"https://a.example", "https://b.example", "https://a.example/token", true, false},
		"2025-03-26: another port":                      {"https://a.example", "https://a.example:444", "https://a.example/token", true, false},
		"2025-03-26: another scheme":                    {"https://a.example", "http://a.example/oauth", "https://a.example/token", true, false},
		"2025-03-26: no issuer":                         {"https://a.example", "", "https://a.example/token", true, false},
		"2025-03-26: a name that begins the same":       {"https://a.example", "https://a.example.evil.test/", "https://a.example/token", true, false},
		"2025-03-26: a user that looks like the server": {"https://a.example", "https://a.example@evil.test/", "https://a.example/token", true, false},
		"a token endpoint without TLS":                  {"https://a.example", "https://a.example", "http://a.example/token", false, false},
		"a token endpoint that fills stores":            {"https://a.example", "https://a.example", "https://a.example/" + strings.Repeat("x", maxName), false, false},
		"no token endpoint":                             {"https://a.example", "https://a.example", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&metadata{Issuer: c.says, TokenEndpoint: c.token}).check(c.issuer, c.own)
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAddressesThatOnlyTheOperatorMayName(t *testing.T) {
	for address, public := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:80": false, "10.1.2.3:443": false, "192.168.0.1:443": false, "172.16.0.1:443": false, "169.254.169.254:80": false,
		"100.64.0.1:443": false, "0.0.0.0:80": false, "[::1]:80": false, "[fe80::1]:80": false, "[fd00::1]:80": false, "[::ffff:10.0.0.1]:80": false,
		"224.0.0.1:80": false, "name:80": false,
	} {
		if err := publicOnly("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestRedirectsThatAreFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		method, from, to string
		hops             int
		follow           bool
	}{
		"metadata that moved":       {"GET", "https://a.example/x", "https://b.example/y", 1, true},
		"metadata that lose TLS":    {"GET", "https://a.example/x", "http://b.example/y", 1, false},
		"metadata that move always": {"GET", "https://a.example/x", "https://b.example/y", 6, false},
		"a token request":           {"POST", "https://a.example/x", "https://a.example/y", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := url.Parse(c.from)
			if err != nil {
				t.Fatal(err)
			}
			to, err := url.Parse(c.to)
			if err != nil {
				t.Fatal(err)
			}
			var via []*http.Request
			for range c.hops {
				via = append(via, &http.Request{Method: c.method, URL: from})
			}
			if err := redirect(&http.Request{Method: "GET", URL: to}, via); (err == nil) != c.follow {
				t.Errorf("got %v", err)
			}
		})
	}
}
