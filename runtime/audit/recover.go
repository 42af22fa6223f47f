package audit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// recover finds the end of the chain and settles what the last daemon left open.
func (l *Log) recover(ctx context.Context) error {
	if err := l.loadHead(ctx); err != nil {
		return err
	}
	lost, err := l.unfinished(ctx)
	if err != nil {
		return err
	}
	err = l.storage.Write(ctx, func(_ context.Context, c *sql.Conn) (err error) {
		l.stmt, err = c.PrepareContext(context.Background(), insert)
		return err
	})
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		return nil
	}
	for i := range lost {
		e := &lost[i]
		e.Time, e.Kind, e.Duration = time.Now(), tool.RecordFinished, 0
		e.Outcome, e.Code = tool.OutcomeLost, tool.OutcomeUnknown
	}
	l.log.Warn("calls were running when the daemon ended; whether they had effects is not known", "calls", len(lost))
	head, err := l.commit(lost)
	if err == nil {
		l.head = head
	}
	return err
}

func (l *Log) loadHead(ctx context.Context) error {
	row := l.storage.Read().QueryRowContext(ctx, "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
	err := row.Scan(&l.head.Seq, &l.head.Hash)
	if errors.Is(err, sql.ErrNoRows) { // all of it was pruned, or there never was one
		err = l.storage.Read().QueryRowContext(ctx, "SELECT seq, hash FROM audit_checkpoint").Scan(&l.head.Seq, &l.head.Hash)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
	}
	return err
}

// unfinished lists the starts without an end. Only records behind the settled mark can be such.
func (l *Log) unfinished(ctx context.Context) (list []Entry, err error) {
	err = l.storage.Read().QueryRowContext(ctx, "SELECT seq FROM audit_settled").Scan(&l.settledAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	rows, err := l.storage.Read().QueryContext(ctx, "SELECT "+columns+" FROM audit WHERE seq > ? AND kind IN ('started', 'finished') ORDER BY seq", l.settledAt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	open := map[string]Entry{}
	for rows.Next() {
		var e Entry
		if err := e.scan(rows.Scan); err != nil {
			return nil, err
		}
		if e.Kind == tool.RecordStarted {
			open[e.CallID] = e
		} else {
			delete(open, e.CallID)
		}
	}
	return slices.SortedFunc(maps.Values(open), func(a, b Entry) int { return cmp.Compare(a.Seq, b.Seq) }), rows.Err()
}
