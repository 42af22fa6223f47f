package embed

import (
	"log/slog"
	"sync"
	"time"
)

// The pauses between two attempts while the endpoint does not answer.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// outage remembers that the endpoint does not answer, so that searches ask it rarely and the log hears of it once.
type outage struct {
	log *slog.Logger
	url string

	mu      sync.Mutex
	since   time.Time // zero: there is none
	queries bool      // a query fell into it, so that only a query that is answered in time ends it
	pause   time.Duration
	next    time.Time // when a query tries again
}

// mayTry reports whether a query is worth a request; in an outage one is for each pause.
func (o *outage) mayTry(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return true
	}
	if now.Before(o.next) {
		return false
	}
	o.next = now.Add(o.pause)
	o.pause = min(2*o.pause, lastPause)
	return true
}

// failed hears of a request, for a query or for the catalog, that failed.
func (o *outage) failed(err error, now time.Time, query bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queries = o.queries || query
	if !o.since.IsZero() {
		return
	}
	o.since, o.next, o.pause = now, now.Add(firstPause), 2*firstPause
	o.log.Warn("embeddings: the endpoint fails; tools are ranked by words alone until it answers", "url", o.url, "error", err)
}

// over hears of a request that succeeded.
func (o *outage) over(query bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || o.queries && !query {
		return
	}
	o.log.Info("embeddings: the endpoint answers again", "url", o.url, "after", time.Since(o.since).Round(time.Second))
	o.since, o.queries = time.Time{}, false
}
