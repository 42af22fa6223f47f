package audit

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// stretch is how many records one transaction prunes: calls wait for it.
const stretch = 5_000

// nearlyFull is the share of the disk from which the operator is warned.
const nearlyFull = 0.9

// maintain prunes, looks at the disk and tells the head.
func (l *Log) maintain(ctx context.Context) {
	if n, err := l.Prune(ctx); err != nil {
		l.log.Error("old audit records cannot be pruned", "error", err)
	} else if n > 0 {
		l.log.Info("old audit records were pruned", "records", n)
	}
	if l.options.DiskUsed != nil {
		if used, err := l.options.DiskUsed(); err != nil {
			l.log.Error("the disk's free space cannot be read", "error", err)
		} else if used >= nearlyFull {
			l.log.Warn("the state directory's disk is nearly full; free some space or set audit { keep, max_size }", "used_percent", int(100*used))
		}
	}
	l.tellHead()
}

// Prune removes the records that are older than Keep or that make the log larger than MaxSize, oldest first, and leaves a
// signed checkpoint in their place. Calls that are still running keep theirs. It returns how many went.
func (l *Log) Prune(ctx context.Context) (pruned int64, err error) {
	if l.options.Key == nil || l.options.Keep == 0 && l.options.MaxSize == 0 {
		return 0, nil
	}
	for ctx.Err() == nil {
		n, err := l.pruneStretch(ctx)
		pruned += n
		if err != nil {
			return pruned, fmt.Errorf("pruning the audit: %w", err)
		}
		if n == 0 {
			return pruned, l.shrink(ctx)
		}
	}
	return pruned, ctx.Err()
}

func (l *Log) pruneStretch(ctx context.Context) (int64, error) {
	l.storing.Lock()
	defer l.storing.Unlock()
	if err := l.storeWaiting(); err != nil { // which would else wait for all of the pruning
		return 0, err
	}
	cut, err := l.cut(ctx)
	if err != nil || cut == nil {
		return 0, err
	}
	var n int64
	err = l.storage.Write(ctx, func(ctx context.Context, c *sql.Conn) error {
		res, err := c.ExecContext(ctx, "DELETE FROM audit WHERE seq <= ?", cut.Seq)
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "INSERT OR REPLACE INTO audit_checkpoint (id, seq, hash, time, signature) VALUES (1, ?, ?, ?, ?)",
			cut.Seq, []byte(cut.Hash), cut.Time.UnixNano(), []byte(cut.Signature))
		return err
	})
	return n, err
}

// cut is the checkpoint of the next stretch to be pruned; nil if there is none.
func (l *Log) cut(ctx context.Context) (*Checkpoint, error) {
	read := l.storage.Read()
	over, err := l.oversize(ctx)
	if err != nil {
		return nil, err
	}
	var before int64
	switch {
	case over:
		before = math.MaxInt64 // any age, also one that a wrong clock says
	case l.options.Keep > 0:
		before = time.Now().Add(-l.options.Keep).UnixNano()
	default:
		return nil, nil
	}
	c := &Checkpoint{Time: time.Now().UTC()}
	// Records from the future, where the clock was ahead, are as old as what follows them.
	row := read.QueryRowContext(ctx, `SELECT seq, hash FROM (SELECT seq, hash, time FROM audit
			WHERE seq <= ?1 AND seq >= (SELECT seq FROM audit WHERE time <= max(?2, ?4) ORDER BY seq LIMIT 1) ORDER BY seq LIMIT ?3)
		WHERE time < ?2 ORDER BY seq DESC LIMIT 1`, l.settled(), before, stretch, c.Time.UnixNano())
	if err := row.Scan(&c.Seq, &c.Hash); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	c.Signature = ed25519.Sign(l.options.Key, c.message())
	return c, nil
}

// oversize reports whether the database's content is larger than the operator wants.
func (l *Log) oversize(ctx context.Context) (bool, error) {
	if l.options.MaxSize == 0 {
		return false, nil
	}
	size, err := l.Size(ctx)
	return size > l.options.MaxSize, err
}

// Size is the number of bytes that the database's content takes.
func (l *Log) Size(ctx context.Context) (size int64, err error) {
	err = l.storage.Read().QueryRowContext(ctx,
		"SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&size)
	return size, err
}

// shrink gives the space of pruned records back to the disk.
func (l *Log) shrink(ctx context.Context) error {
	l.storing.Lock()
	defer l.storing.Unlock()
	return l.storage.Write(ctx, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "PRAGMA incremental_vacuum(1000)")
		return err
	})
}
