package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurationsReadAsWritten(t *testing.T) {
	tests := map[string]time.Duration{
		"0s": 0, "90d": 90 * day, "1m30s": 90 * time.Second, "12h": 12 * time.Hour, "500ms": 500 * time.Millisecond, "1h1m": 61 * time.Minute,
	}
	for text, want := range tests {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q reads as %v, %v", text, got, err)
		}
		if got := formatDuration(want); got != text {
			t.Errorf("%v is written %q, want %q", want, got, text)
		}
	}
	if got, err := parseDuration("1d12h"); err != nil || got != 36*time.Hour {
		t.Errorf("1d12h reads as %v, %v", got, err)
	}
	for _, text := range []string{"", "d", "5", "1.5d", "-1d", "1d-1h", "1d2d", "106752d", "99999999999d", "1 d", "1day"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q reads as %v, want an error", text, got)
		}
	}
}

func TestSizesReadAsWritten(t *testing.T) {
	tests := map[string]Size{"0B": 0, "1B": 1, "16MiB": 16 << 20, "1025KiB": 1025 << 10, "2GiB": 2 << 30, "1TiB": 1 << 40}
	for text, want := range tests {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q reads as %d, %v", text, got, err)
		}
		if got := want.String(); got != text {
			t.Errorf("%d is written %q, want %q", want, got, text)
		}
	}
	for _, text := range []string{"", "B", "5", "-1B", "1.5MiB", "16MB", "9223372036854775807KiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q reads as %d, want an error", text, got)
		}
	}
}

func TestDurationsAndSizesSurviveWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		if got, err := parseDuration(formatDuration(d)); err != nil || got != d {
			t.Fatalf("%v is written %q and reads as %v, %v", d, formatDuration(d), got, err)
		}
		s := Size(rapid.Int64Min(0).Draw(t, "size"))
		if got, err := parseSize(s.String()); err != nil || got != s {
			t.Fatalf("%d is written %q and reads as %d, %v", s, s, got, err)
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"log", "listen", "mcp_server", "tool_search", "threshold_pct"}
	tests := map[string]string{
		"lgo": "log", "LOG": "log", "listne": "listen", "mcp": "mcp_server", "server": "mcp_server", "treshold_pct": "threshold_pct",
		"toolsearch": "tool_search", "colour": "", "x": "", "": "",
	}
	for name, want := range tests {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}
