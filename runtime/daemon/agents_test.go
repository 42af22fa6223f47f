package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/config"
)

func TestWhoNeedsNoToken(t *testing.T) {
	off := config.Agent{Name: "local"}
	own := config.Agent{Name: "local", Enabled: true, Exclude: []string{"terminal"}}
	desk := config.Agent{Name: "desk", Enabled: true, TokenSHA256: strings.Repeat("00", 32)}
	gone := config.Agent{Name: "gone", TokenSHA256: strings.Repeat("11", 32)}
	cases := map[string]struct {
		service bool
		agents  []config.Agent
		names   []string
		local   bool
	}{
		"without agents, the person's own programs":             {false, nil, []string{"local"}, true},
		"beside other agents, too":                              {false, []config.Agent{desk}, []string{"desk", "local"}, true},
		"as the operator configured them":                       {false, []config.Agent{own, desk}, []string{"local", "desk"}, true},
		"nobody, once that is switched off":                     {false, []config.Agent{desk, off}, []string{"desk"}, false},
		"nobody at a system service":                            {true, []config.Agent{desk}, []string{"desk"}, false},
		"nobody at a system service, but by name over a socket": {true, []config.Agent{own}, []string{"local"}, false},
		"another agent that is switched off is not there":       {true, []config.Agent{desk, gone}, []string{"desk"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := newAgents(&config.Config{Agents: c.agents}, c.service)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.names, a.names); diff != "" {
				t.Errorf("agents (-want +got):\n%s", diff)
			}
			if _, err := a.Local(a.uid, true); (err == nil) != c.local {
				t.Errorf("without a token: %v", err)
			}
			if len(a.byName) != len(c.names) || len(a.byToken) > 1 {
				t.Errorf("%d by name, %d by token", len(a.byName), len(a.byToken))
			}
		})
	}
}

func TestATokenIsMaskedOnceItWasPresented(t *testing.T) {
	sum := sha256.Sum256([]byte("token-of-desk"))
	d, err := New(&Options{Config: &config.Config{Agents: []config.Agent{{Name: "desk", Enabled: true, TokenSHA256: hex.EncodeToString(sum[:])}}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if agent, err := d.agents.ByToken("token-of-desk"); err != nil || agent.Name != "desk" {
			t.Errorf("%+v, %v", agent, err)
		}
	}
	if _, err := d.agents.ByToken("token-of-nobody"); err == nil {
		t.Error("a wrong token is taken")
	}
	if got := d.secrets.Mask("token-of-desk token-of-nobody"); got != "*** token-of-nobody" {
		t.Error(got)
	}
}
