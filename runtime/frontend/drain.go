package frontend

import (
	"context"
	"sync"

	"github.com/hermesd/hermesd/runtime/tool"
)

// drain counts the calls that run, and lets no new one begin once it is closing.
type drain struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // set by Drain; closed when nothing runs any more
}

// enter counts calls in. What a running call calls itself is part of it and always let in.
func (d *drain) enter(nested bool) *tool.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle != nil && !nested {
		return tool.Errorf(tool.ShuttingDown, "hermesd is stopping and takes no new calls; try again after it has started")
	}
	d.running++
	return nil
}

func (d *drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running == 0 && d.idle != nil {
		close(d.idle)
	}
}

// Hold has Drain wait until release is called, which is for when a call that begins now has been answered: its end alone
// answers nobody.
func (d *Desk) Hold() (release func()) {
	if d.drain.enter(false) != nil { // the call will be refused
		return func() {}
	}
	return d.drain.leave
}

// Drain refuses new calls and waits until those that run have ended and what is held was released, or ctx has ended.
func (d *Desk) Drain(ctx context.Context) {
	d.drain.mu.Lock()
	if d.drain.idle == nil {
		d.drain.idle = make(chan struct{})
		if d.drain.running == 0 {
			close(d.drain.idle)
		}
	}
	idle := d.drain.idle
	d.drain.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
