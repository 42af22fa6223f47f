package pipeline

import (
	"bufio"
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ids makes call ids: ULIDs that sort in the order in which they were made.
type ids struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func newIDs() *ids {
	return &ids{entropy: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

func (g *ids) next() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		id, err := ulid.New(ulid.Timestamp(time.Now()), g.entropy)
		if err == nil {
			return id.String()
		}
		// Within one millisecond the random part only grows; it ran over. Start from a fresh one.
		g.entropy = ulid.Monotonic(bufio.NewReader(rand.Reader), 0)
	}
}
