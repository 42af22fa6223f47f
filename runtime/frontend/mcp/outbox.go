package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// unreadTime is how long a client on a stream may take to make room for one piece of a message.
	unreadTime = 30 * time.Second
	// unreadPiece is how much of a message is written at a time, in bytes: a client that reads slowly gets on all the same.
	unreadPiece = 64 << 10
)

var errUnread = fmt.Errorf("the client has read nothing for %v; its stream was closed", unreadTime)

// outbox is what is to be written to a client's stream, in order. One goroutine writes it, so that a client that has stopped
// reading keeps only those waiting whose message it is to read.
type outbox struct {
	more chan struct{} // capacity 1: there is something to write

	mu    sync.Mutex
	queue []*letter
}

// letter is one message.
type letter struct {
	raw  []byte
	sent chan struct{} // closed when it has been written or err says why not; nil if nobody waits for that
	err  error
}

func newOutbox() *outbox { return &outbox{more: make(chan struct{}, 1)} }

// put queues a message for whose writing somebody waits. It calls queued before anything of the message can be written.
func (o *outbox) put(raw []byte, queued func()) *letter {
	l := &letter{raw: raw, sent: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(l)
	queued()
	return l
}

// mention queues a message that says only that something changed. Nobody waits for it, and while it waits it need not be
// said again: so there are never more of them than things that can change.
func (o *outbox) mention(raw []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.ContainsFunc(o.queue, func(l *letter) bool { return l.sent == nil && bytes.Equal(l.raw, raw) }) {
		o.add(&letter{raw: raw})
	}
}

// add queues a message. The mutex is held.
func (o *outbox) add(l *letter) {
	o.queue = append(o.queue, l)
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// next takes the oldest messages, as many as are written at once; none if there are none.
func (o *outbox) next() []*letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, size := 0, 0
	for n < len(o.queue) && (n == 0 || size+len(o.queue[n].raw) < unreadPiece) {
		size += len(o.queue[n].raw) + 1
		n++
	}
	batch := o.queue[:n:n]
	o.queue = o.queue[n:]
	return batch
}

// tellsOfChange reports whether a notification says no more than that something changed.
func tellsOfChange(r *jsonrpc.Request) bool {
	return !r.IsCall() && tells(r.Method)
}

// send returns when a message has been written, the connection is closed, or ctx has ended.
func (c *streamConn) send(ctx context.Context, raw []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.sent(ctx, c.out.put(raw, func() {}))
}

// sent waits as send does.
func (c *streamConn) sent(ctx context.Context, l *letter) error {
	select {
	case <-l.sent:
		return l.err
	case <-c.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write writes what is in the outbox until the connection is closed. A client that stops reading has its connection closed.
func (c *streamConn) write() {
	stalled := time.AfterFunc(unreadTime, func() { c.fail(errUnread) })
	stalled.Stop()
	defer stalled.Stop()
	for {
		select {
		case <-c.out.more:
		case <-c.closed:
			return
		}
		for batch := c.out.next(); len(batch) > 0; batch = c.out.next() {
			err := c.deliver(batch, stalled)
			for _, l := range batch {
				if l.err = err; l.sent != nil {
					close(l.sent)
				}
			}
			clear(batch) // what is written is not kept by the queue's array
			if err != nil {
				c.fail(err)
				return
			}
		}
	}
}

// deliver writes messages. stalled is set while a piece of them is written.
func (c *streamConn) deliver(batch []*letter, stalled *time.Timer) error {
	var text []byte
	for _, l := range batch {
		text = append(append(text, l.raw...), '\n')
	}
	defer stalled.Stop()
	for piece := range slices.Chunk(text, unreadPiece) {
		stalled.Reset(unreadTime)
		if _, err := c.rwc.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// fail closes the connection of a client that takes nothing any more.
func (c *streamConn) fail(cause error) {
	if err := c.end(cause); err != nil {
		c.log.Debug("stream closed", "error", err)
	}
}
