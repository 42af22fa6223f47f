package providertest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestTheFakeBehavesLikeAProvider(t *testing.T) {
	p := providertest.New("notes", providertest.Echo("notes_read"))
	changes := 0
	p.OnChange = func() { changes++ }
	req := &provider.Request{Call: &tool.Call{Arguments: json.RawMessage(`{"a":1}`)}, Definition: &p.Offer().Tools[0]}

	result, err := p.Invoke(context.Background(), req)
	if err != nil || result.Text() != `{"a":1}` || string(result.Structured) != `{"a":1}` {
		t.Errorf("echo: %v, %v", result, err)
	}

	before := p.Offer()
	p.SetUnmet("notes_read", "no key")
	if len(before.Unmet) != 0 {
		t.Error("a published offer changed")
	}
	if err := p.Check(context.Background(), "notes_read"); tool.CodeOf(err) != tool.NotAvailable {
		t.Errorf("check: %v", err)
	}

	for state, code := range map[provider.State]tool.Code{
		provider.Backoff: tool.ProviderStarting, provider.Quarantined: tool.ProviderQuarantined, provider.Stopped: tool.ProviderDown,
	} {
		p.SetStatus(state, "because")
		if _, err := p.Invoke(context.Background(), req); tool.CodeOf(err) != code {
			t.Errorf("%s: %v", state, err)
		}
	}
	if changes != 4 || len(p.Calls()) != 1 || p.Finished() != 1 || len(p.Checks()) != 1 {
		t.Errorf("record: %d changes, %d calls, %d finished, %d checks", changes, len(p.Calls()), p.Finished(), len(p.Checks()))
	}
}
