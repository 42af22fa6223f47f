package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxOpen bounds the requests of one client, of a stream or a session of HTTP, that are open at once. The guard bounds the
// calls of an agent that run; this bounds what a client may make the daemon keep.
const maxOpen = 1000

var (
	errIDInUse  = errors.New("a request with this id is not answered yet")
	errManyOpen = fmt.Errorf("%d requests of this client are open, and no more are taken; wait for answers", maxOpen)
)

// requests are those of a client that are not answered yet, by id as the SDK has it.
type requests struct {
	mu        sync.Mutex
	open      map[any]*request
	answering int           // requests whose answer is not written yet; their ids may be in use again
	lasting   int           // of them
	done      chan struct{} // closed when there are none but lasting ones; made by idle
	begun     bool          // initialize was answered
	over      bool          // none is begun any more

	calls sync.WaitGroup // those that the SDK does not know
}

// request is one of them.
type request struct {
	initializes bool
	lasts       bool               // its answer is its end: it subscribes to something
	cancel      context.CancelFunc // of one that the SDK does not know; nil for others
	release     func()             // is called once it is answered, or never will be; nil if nobody waits for that
}

func newRequests() *requests { return &requests{open: map[any]*request{}} }

// begin notes a request, unless there are too many or its id is in use. One that the SDK does not know is to end with
// calls.Done.
func (r *requests) begin(id any, this *request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return io.ErrClosedPipe
	case r.open[id] != nil:
		return errIDInUse
	case r.answering >= maxOpen:
		return errManyOpen
	}
	r.open[id] = this
	r.answering++
	if this.lasts {
		r.lasting++
	}
	if this.cancel != nil {
		r.calls.Add(1)
	}
	return nil
}

// end takes a request out, whose id its client may use again as soon as it has read the answer. The request is nil if
// nothing of this id is open.
func (r *requests) end(id any) *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	this := r.open[id]
	delete(r.open, id)
	return this
}

// drop takes a request out that was not answered.
func (r *requests) drop(id any, this *request) {
	r.mu.Lock()
	open := r.open[id] == this
	if open {
		delete(r.open, id)
	}
	r.mu.Unlock()
	if open {
		r.answered(this)
	}
}

// answered notes that the answer to a request that end returned is written.
func (r *requests) answered(this *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if this == nil {
		return
	}
	if this.release != nil {
		this.release()
	}
	if this.lasts {
		r.lasting--
	}
	if r.answering--; r.answering == r.lasting && r.done != nil {
		close(r.done)
		r.done = nil
	}
}

// cancel ends a call that the SDK does not know. It reports whether there is one of this id.
func (r *requests) cancel(id any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	this := r.open[id]
	if this == nil || this.cancel == nil {
		return false
	}
	this.cancel()
	return true
}

// close lets none begin any more. Those that are open will not be answered.
func (r *requests) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, this := range r.open {
		if this.release != nil {
			this.release()
		}
	}
}

// beginSession notes that the answer to initialize is on its way.
func (r *requests) beginSession() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = true
}

// inSession reports whether the client's session has begun.
func (r *requests) inSession() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// idle is closed when every request is answered, but for those that last.
func (r *requests) idle() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := make(chan struct{})
	if r.answering == r.lasting {
		close(done)
	} else {
		r.done = done
	}
	return done
}
