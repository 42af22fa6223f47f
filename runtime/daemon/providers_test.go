package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// A block is often switched off because it does not work, so nothing of it may stop the daemon.
func TestWhatIsSwitchedOffIsSeenAndNotStarted(t *testing.T) {
	d := run(t, `
listen {
  http = "off"
}
plugin "gone" {
  path    = "no/such/file"
  enabled = false
}
mcp_server "old" {
  command = ["no-such-program"]
  enabled = false
}
`)
	<-d.Settled()
	got := map[provider.Identity]provider.State{}
	for _, p := range (facts{d: d}).Providers() {
		if status := p.Offer().Status; status.Reason != "" {
			got[p.Identity()] = status.State
		}
		_, err := p.Invoke(t.Context(), &provider.Request{})
		if e := tool.AsError(err); e == nil || e.Code != tool.ProviderDown {
			t.Errorf("a call ended with %v", err)
		}
	}
	want := map[provider.Identity]provider.State{
		{Name: "gone", Source: tool.SourcePlugin}: provider.Disabled, {Name: "old", Source: tool.SourceMCP}: provider.Disabled,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
