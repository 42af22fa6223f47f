package config_test

import (
	"testing"

	"github.com/hermesd/hermesd/runtime/config"
)

func TestPeopleReachTheListenerByANameThatLeadsThere(t *testing.T) {
	tls := &config.TLS{}
	cases := map[string]struct {
		listen config.Listen
		bound  string
		want   string
	}{
		"its own address":                           {config.Listen{}, "127.0.0.1:7433", "http://127.0.0.1:7433"},
		"its own address with a certificate":        {config.Listen{TLS: tls}, "192.0.2.1:7433", "https://192.0.2.1:7433"},
		"its own name":                              {config.Listen{TLS: tls}, "desk.lan:7433", "https://desk.lan:7433"},
		"all addresses and no name":                 {config.Listen{TLS: tls}, "[::]:7433", ""},
		"all addresses of IPv4 and no name":         {config.Listen{TLS: tls}, "0.0.0.0:7433", ""},
		"no host and no name":                       {config.Listen{TLS: tls}, ":7433", ""},
		"all addresses, by an allowed host":         {config.Listen{TLS: tls, AllowedHosts: []string{"desk.lan", "x"}}, "[::]:7433", "https://desk.lan:7433"},
		"all addresses, by an allowed host's port":  {config.Listen{TLS: tls, AllowedHosts: []string{"desk.lan:443"}}, "[::]:7433", "https://desk.lan:443"},
		"all addresses, by an allowed IPv6 address": {config.Listen{TLS: tls, AllowedHosts: []string{"2001:db8::1"}}, "[::]:7433", "https://[2001:db8::1]:7433"},
		"what the operator says":                    {config.Listen{PublicURL: "https://desk.example.com/"}, "127.0.0.1:7433", "https://desk.example.com"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.listen.Reach(c.bound); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
