package audit

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Storage is where records are kept. Whether what Write has written survives the loss of power or only the death of the
// process is the storage's: see store.Store.Writer.
type Storage interface {
	// Write runs fn in a transaction, always on the same connection.
	Write(ctx context.Context, fn func(ctx context.Context, c *sql.Conn) error) error
	// Prepare returns what runs a statement within Write, as often as is wanted: see store.Writer.Prepare.
	Prepare(query string) (run func(args []driver.NamedValue) error, err error)
	// Read returns connections for reading.
	Read() *sql.DB
}

// Journal is where records are durable before they are in the storage: see store.Store.Journal. It is used by one goroutine
// at a time.
type Journal interface {
	// Left are the records that were there at first.
	Left() iter.Seq2[[]byte, error]
	// Append makes all records durable, or fails. They are the caller's again when it returns.
	Append(records [][]byte) error
	// Turn begins anew, so that what was appended so far can be taken over; Drop says that it was.
	Turn()
	Drop()
}

const (
	// linger is how long the record of a call's end waits for company. Only the next crash could tell.
	linger = 20 * time.Millisecond
	// gather is how long records stay in the journal only. Who reads the log does not wait for it.
	gather = 100 * time.Millisecond
	// maxPending bounds the records that wait while nothing can be written, and those that wait in the journal; ends that come
	// on top are told to the log and lost.
	maxPending = 100_000
	// maxPendingSize bounds those that wait while nothing can be written, in bytes: they must fit into the journal at once.
	maxPendingSize = 48 << 20
	// crowd and crowdSize are from when on calls wait for the table, in records and bytes that wait in the journal.
	crowd     = maxPending / 2
	crowdSize = 16 << 20
	// settleEvery is after how many records the mark moves behind which no call is unfinished.
	settleEvery = 1024
)

// Options configure a log. The zero value works, except that prunings need a Key.
type Options struct {
	// Arguments stores calls' arguments, masked, besides their digests.
	Arguments bool
	// Mask hides secrets in stored arguments; nil hides nothing.
	Mask func(string) string
	// Allow lets calls run whose record could not be written. The default is that they do not.
	Allow bool
	// Keep and MaxSize (bytes of the database) prune old records; 0 keeps all.
	Keep    time.Duration
	MaxSize int64
	// Key signs the checkpoints that stand in for pruned records. Without one nothing is pruned.
	Key ed25519.PrivateKey
	// Maintain is how often the log is pruned and its head told to the Logger; 0 is every 10 minutes.
	Maintain time.Duration
	// DiskUsed returns which share of the disk is taken, from 0 to 1; from 0.9 the Logger is warned. nil does not look.
	DiskUsed func() (float64, error)
	Logger   *slog.Logger // nil discards
}

// Log records calls. It implements the audit of package pipeline. It may be used from any goroutine.
//
// A record goes three steps: into the open group (mu), with the group into the chain and the journal, where it is durable
// (writing), and with many others into the table, where it is read (storing).
type Log struct {
	options Options
	storage Storage
	log     *slog.Logger

	storing   sync.Mutex // held by whoever changes the table; taken before writing
	rows      *rows
	stored    Head             // of the table
	unended   map[string]int64 // calls in the table that have started and not finished, by id, with the number of that record
	settledAt int64            // the head when the settled mark was last stored

	writing sync.Mutex // held by whoever writes a group; taken before mu
	chain   *chain
	journal Journal
	lines   lines
	head    Head // of the journal
	backlog backlog
	crowded atomic.Bool // the backlog is

	mu               sync.Mutex
	open             *group
	written          []Entry       // empty: a group's that was written, to be used again
	taken, takenSize int           // entries and bytes that are being written, and come back if that fails
	changed          chan struct{} // closed and replaced when the table has grown
	closed           bool

	wake  chan struct{} // somebody should write the open group now
	timer *time.Timer   // somebody should write it soon
	due   *time.Timer   // somebody should store what waits
	stop  context.CancelFunc
	work  sync.WaitGroup
	close func() error

	unwritten, unstored fault // of the journal and of the table
}

// fault is why the last attempt failed; nil if it did not.
type fault struct{ atomic.Pointer[error] }

// Head is the end of the chain. Kept elsewhere, it shows whether records were cut off at the end.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash Digest `json:"hash"`
}

// Open opens the log. What its predecessor left in the journal goes into the table; calls that had started and never
// finished are recorded as [tool.OutcomeLost].
func Open(ctx context.Context, storage Storage, journal Journal, opts *Options) (*Log, error) {
	l := &Log{
		storage: storage, journal: journal, chain: newChain(), unended: map[string]int64{}, open: &group{},
		changed: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	if opts != nil {
		l.options = *opts
	}
	if l.options.Mask == nil {
		l.options.Mask = func(s string) string { return s }
	}
	if l.options.Maintain == 0 {
		l.options.Maintain = 10 * time.Minute
	}
	if l.log = l.options.Logger; l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if err := l.recover(ctx); err != nil {
		return nil, fmt.Errorf("opening the audit: %w", err)
	}
	var work context.Context
	work, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.timer, l.due = time.NewTimer(linger), time.NewTimer(gather)
	l.close = sync.OnceValue(l.end)
	l.work.Go(func() { l.write(work) })
	l.work.Go(func() { l.keep(work) })
	return l, nil
}

// Started records that a call is about to run. It returns when the record is durable; a record that cannot be written is
// an error, unless the options allow such calls.
func (l *Log) Started(ctx context.Context, r *tool.Record) error {
	if err := l.makeRoom(); err != nil {
		return err
	}
	g, err := l.add(r, true)
	if err != nil {
		return l.tolerate(r, err)
	}
	if l.writing.TryLock() {
		l.writeGroup() // if it is not g that is written here, g was written before
		l.writing.Unlock()
	} else {
		l.hurry()
		select {
		case <-l.done(g):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if g.err != nil {
		return l.tolerate(r, g.err)
	}
	return nil
}

func (l *Log) tolerate(r *tool.Record, err error) error {
	if !l.options.Allow {
		return err
	}
	l.log.Error("a call runs without an audit record", "call", r.CallID, "tool", r.Tool, "agent", r.Agent, "error", err)
	return nil
}

// Finished records how a call ended, or that it was refused. It returns at once; the record joins a later write.
func (l *Log) Finished(r *tool.Record) { l.Note(r) }

// Note adds a record that nobody waits for, such as that a human was asked.
func (l *Log) Note(r *tool.Record) {
	if _, err := l.add(r, false); err != nil {
		l.log.Error("an audit record is lost", "kind", r.Kind, "call", r.CallID, "tool", r.Tool, "outcome", r.Outcome, "error", err)
	}
}

// Blocked is why calls do not run: the last records could not be written, and the options do not allow calls without. It
// tries nothing by itself; what nobody waits for is tried again each second.
func (l *Log) Blocked() error {
	if l.options.Allow {
		return nil
	}
	for _, f := range []*fault{&l.unwritten, &l.unstored} {
		if err := f.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// Head is the end of the chain as it is durable now.
func (l *Log) Head() Head {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.head
}

// Close stores what waits and ends the log. It closes neither the storage nor the journal. It may be called twice.
func (l *Log) Close() error { return l.close() }

func (l *Log) end() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.work.Wait()
	err := l.sync()
	l.tellHead()
	return err
}

// tellHead puts the head where the database's writer cannot change it later.
func (l *Log) tellHead() {
	head := l.Head()
	l.log.Info("audit head", "seq", head.Seq, "hash", hex.EncodeToString(head.Hash))
}
