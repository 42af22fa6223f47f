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
	err := l.storage.Write(ctx, func(_ context.Context, c *sql.Conn) (err error) {
		l.stmt, err = c.PrepareContext(context.Background(), insert)
		return err
	})
	if err != nil {
		return err
	}
	if err := l.loadHead(ctx); err != nil {
		return err
	}
	if err := l.takeOver(); err != nil {
		return err
	}
	lost, err := l.unfinished(ctx)
	if err != nil {
		return err
	}
	head := l.stored
	for i := range lost {
		e := &lost[i]
		e.Time, e.Kind, e.Duration = time.Now(), tool.RecordFinished, 0
		e.Outcome, e.Code = tool.OutcomeLost, tool.OutcomeUnknown
		head = l.chain.link(head, e)
	}
	if len(lost) > 0 {
		l.log.Warn("calls were running when the daemon ended; whether they had effects is not known", "calls", len(lost))
		_, err = l.insert(lost)
	}
	l.head = l.stored
	return err
}

// maxOrphans bounds the records that are told to the log one by one.
const maxOrphans = 100

// takeOver stores what the journal has and the table has not. Records that do not continue the table, such as after it was
// replaced by an older one, are told to the log: there is no place for them in the chain.
func (l *Log) takeOver() error {
	var next []Entry
	head := l.stored
	orphans := 0
	for _, line := range l.journal.Left() {
		e, err := readLine(line)
		switch {
		case err == nil && e.Seq <= head.Seq: // was taken over
		case err == nil && follow(l.chain, head, &e) == nil:
			next = append(next, e)
			head = Head{e.Seq, e.Hash}
		default:
			if orphans++; orphans <= maxOrphans {
				l.log.Error("an audit record of the journal does not continue the log", "record", e, "error", err)
			}
		}
	}
	if orphans > 0 {
		l.log.Error("the journal has audit records that do not continue the log; was the state database replaced by an older one?", "records", orphans)
	}
	_, err := l.insert(next)
	return err
}

func (l *Log) loadHead(ctx context.Context) error {
	row := l.storage.Read().QueryRowContext(ctx, "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
	err := row.Scan(&l.stored.Seq, &l.stored.Hash)
	if errors.Is(err, sql.ErrNoRows) { // all of it was pruned, or there never was one
		err = l.storage.Read().QueryRowContext(ctx, "SELECT seq, hash FROM audit_checkpoint").Scan(&l.stored.Seq, &l.stored.Hash)
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
