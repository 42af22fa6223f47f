package daemon

import (
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
)

// lastGrace is kept of shutdown_timeout for providers, when calls would take all of it: long enough for a plugin that
// behaves to end by itself.
const lastGrace = 300 * time.Millisecond

// stopTimes are the ends of a stop that has begun: all of it takes no longer than shutdown_timeout.
type stopTimes struct {
	calls     time.Time // running calls end by then
	providers time.Time // and what serves them by then
}

func (d *Daemon) setStop(now time.Time) {
	timeout := d.cfg.ShutdownTimeout
	d.stop.Store(&stopTimes{calls: now.Add(timeout - min(lastGrace, timeout/4)), providers: now.Add(timeout)})
}

// stopBy tells providers how long they have left, nil where nothing hurries: they have at least a moment, and at most
// their own grace.
func (d *Daemon) stopBy() error {
	times := d.stop.Load()
	if times == nil {
		return nil
	}
	by := times.providers
	if soonest := time.Now().Add(lastGrace / 3); by.Before(soonest) {
		by = soonest
	}
	return provider.StopBy(by)
}
