package bridge_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/policy"
	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
)

// warmable notes when it is warmed.
type warmable struct {
	*providertest.Fake
	warmed *[]string
}

func (w warmable) Warm() { *w.warmed = append(*w.warmed, w.Identity().Name) }

func TestOnlyTheProviderOfADescribedToolIsWarmed(t *testing.T) {
	var warmed []string
	list := []provider.Provider{
		warmable{providertest.New("notes", providertest.Echo("notes_read")), &warmed},
		warmable{providertest.New("mail", providertest.Echo("mail_send")), &warmed},
		providertest.New("plain", providertest.Echo("plain_echo")), // cannot be warmed
	}
	snapshots := catalog.New(nil)
	snapshots.SetProviders(list)
	pipe, err := pipeline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := policy.NewToolsets(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := bridge.New(&bridge.Options{Pipeline: pipe})
	caller := &bridge.Caller{View: snapshots.Snapshot().View(sets.Scope(nil, nil)), Shown: external{}}
	if _, err := b.Describe(t.Context(), caller, json.RawMessage(`{"names":["notes_read","plain_echo","nothing_like_it"]}`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"notes"}, warmed); diff != "" {
		t.Errorf("warmed (-want +got):\n%s", diff)
	}
}
