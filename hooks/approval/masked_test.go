package approval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/internal/redact"
)

func TestWhatHumansAreShownHasNoSecrets(t *testing.T) {
	const key = "hunter22\n\"x\\y\""
	raw, err := json.Marshal(map[string]any{"key": key, "disk": "sda"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		arguments string
		shown     string
	}{
		"a secret that is escaped in JSON":     {string(raw), `{"disk":"sda","key":"***"}`},
		"a secret that is a number":            {`{"pin":12345678}`, `"{\"pin\":***}"`},
		"arguments that are as they are shown": {`{"disk":"sda"}`, `{"disk":"sda"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, func(o *approval.Options) { o.Mask = redact.New(key, "12345678").Mask })
				_, stop := b.Watch() // somebody can be asked
				defer stop()
				out := start(t.Context(), b, ask(request(arguments(tt.arguments), func(r *approval.Request) { r.Reason = "with " + key })))
				p := open(t, b, 1)[0]
				if string(p.Arguments) != tt.shown || p.Reason != "with ***" {
					t.Errorf("shown %s because %q", p.Arguments, p.Reason)
				}
				whole, err := json.Marshal(p)
				if err != nil || strings.Contains(p.Text()+string(whole), "hunter22") || strings.Contains(p.Text()+string(whole), "12345678") {
					t.Errorf("%s, %v\n%s", whole, err, p.Text())
				}
				if always := slices.Contains(p.Choices, approval.Always); always != (tt.shown == tt.arguments) {
					t.Errorf("always is offered: %t", always) // its pattern would be shown and stored
				}
				decide(t, b, p.ID, approval.Once)
				if a := <-out; a[0].Err != nil {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}
