package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/conformance"
)

func TestACallTellsHowFarItIs(t *testing.T) {
	o := plugintest.Start(t, plugin(), nil).Call(t, "count_primes", primesInput{Below: 1000})
	if want := `{"count":168,"largest":997}`; string(o.Structured) != want {
		t.Errorf("result %s, want %s", o.Structured, want)
	}
	if len(o.Progress) < 10 || o.Progress[0].Total != 1000 {
		t.Errorf("progress %v", o.Progress)
	}
	if len(o.Logs) != 1 || !strings.Contains(string(o.Logs[0].Data), "sieving") {
		t.Errorf("logs %v", o.Logs)
	}
}

func TestABigResultIsWholeHoweverSmallTheMessages(t *testing.T) {
	s := plugintest.Start(t, plugin(), &plugintest.Options{MaxMessageBytes: 64 << 10})
	text := s.Call(t, "number_table", tableInput{Rows: 20_000}).Text()
	if got := strings.Count(text, "\n"); got != 20_000 {
		t.Errorf("%d rows", got)
	}
}

func TestACountdownEndsWhenNobodyWaits(t *testing.T) {
	s := plugintest.Start(t, plugin(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.CallContext(ctx, t, "agent-1", "countdown", countdownInput{Seconds: 3600}).Code(); got != pluginsdk.Cancelled {
		t.Errorf("code %q", got)
	}
}

func TestItKeepsTheContract(t *testing.T) {
	plugintest.Conformance(t, plugin, &conformance.Options{
		Slow: []conformance.Call{{Tool: "countdown", Arguments: json.RawMessage(`{"seconds":3600}`)}},
	})
}
