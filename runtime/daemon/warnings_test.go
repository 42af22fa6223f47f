package daemon

import (
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

// aPlugin is one that may serve hooks.
type aPlugin struct {
	*providertest.Fake
	hook bool
}

func (p *aPlugin) IsHook() bool { return p.hook }

func TestAHookWhosePluginServesNoneIsTold(t *testing.T) {
	agents, err := newAgents(&config.Config{}, false)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		hook, enabled bool
		want          int
	}{
		"the plugin decides on calls":     {true, true, 0},
		"it does not":                     {false, true, 1},
		"it does not, and nobody asks it": {false, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plugin := &aPlugin{providertest.New("notes", providertest.Echo("notes_read")), c.hook}
			d := &Daemon{
				cfg:     &config.Config{Hooks: []config.Hook{{Name: "guard", Plugin: "notes", Enabled: c.enabled}}},
				catalog: catalog.New(nil), agents: agents, providers: []provider.Runner{plugin},
			}
			got := d.warnings()
			if len(got) != c.want || c.want > 0 && !strings.Contains(got[0], `hook "guard": the plugin "notes" does not declare`) {
				t.Errorf("%q", got)
			}
		})
	}
}
