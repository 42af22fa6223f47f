package approval

import (
	"context"
	"time"
)

// Callbacks and writes to the store are slow, so they are not done under the broker's lock; but they are done in the order in
// which it decided: a grant is never deleted before it was added, nor a request closed before it was opened. One goroutine at
// a time works them off, and whoever caused them waits until they are done.

// unlock frees the lock, and returns when what was left for later under it is done.
func (b *Broker) unlock() {
	if len(b.later) == 0 {
		b.mu.Unlock()
		return
	}
	done := make(chan struct{})
	b.queue = append(append(b.queue, b.later...), func() { close(done) })
	b.later = nil
	if !b.working {
		b.working = true
		go b.work() // it ends by itself; who waits for what it does is here
	}
	b.mu.Unlock()
	<-done
}

// work does what is queued, until nothing is.
func (b *Broker) work() {
	for {
		b.mu.Lock()
		queue := b.queue
		b.queue = nil
		b.working = len(queue) > 0
		b.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, f := range queue {
			f()
		}
	}
}

// write queues a write to the store; report hears how it ended. The time counts from now, so that a store that hangs holds
// nobody for longer than [storeWait], however many writes are queued before this one.
func (b *Broker) write(ctx context.Context, write func(context.Context) error, report func(error)) {
	ends := time.Now().Add(storeWait)
	b.later = append(b.later, func() {
		ctx, cancel := context.WithDeadline(ctx, ends)
		defer cancel()
		report(write(ctx))
	})
}

// stored queues a write that nobody asks about. What fails is logged: an approval needs no store to be given or refused.
func (b *Broker) stored(what string, write func(context.Context) error) {
	b.write(context.Background(), write, func(err error) {
		if err != nil {
			b.log.Error("the approvals' store failed", "what", what, "error", err)
		}
	})
}
