package config

import "time"

// Backoff says how long a provider that failed to start, or broke, is left alone before it is started again.
type Backoff struct {
	// Min is the wait after the first failure. It doubles with every further failure in a row, give or take a quarter.
	Min time.Duration `key:"min" default:"200ms" min:"10ms" max:"1h"`
	// Max is the longest wait.
	Max time.Duration `key:"max" default:"30s" min:"10ms" max:"1d"`
}

// Quarantine says when a plugin that keeps failing is no longer started by itself, until `hermesd plugin restart`.
type Quarantine struct {
	// Failures within window are too many.
	Failures int `key:"failures" default:"5" min:"1" max:"1000"`
	// Window is the time in which failures are counted.
	Window time.Duration `key:"window" default:"10m" min:"1s" max:"1d"`
}

// checkBackoffs refuses a first wait that is longer than the longest.
func (l *loader) checkBackoffs() {
	check := func(kind string, i int, b Backoff) {
		if b.Min > b.Max {
			l.fault(l.labels[kind][i], "Backoff that does not grow", "backoff { min } is longer than backoff { max }. Write a max of at least "+b.Min.String()+".")
		}
	}
	for i, p := range l.cfg.Plugins {
		check("plugin", i, p.Backoff)
	}
	for i, m := range l.cfg.MCPServers {
		check("mcp_server", i, m.Backoff)
	}
}
