package audit

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// recover finds the end of the chain and settles what the last daemon left open.
func (l *Log) recover(ctx context.Context) (err error) {
	if l.rows, err = newRows(l.storage); err != nil {
		return err
	}
	if l.stored, err = l.tableHead(ctx); err != nil {
		return err
	}
	if err := l.loadUnended(ctx); err != nil {
		return err
	}
	if err := l.takeOver(ctx); err != nil {
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
		head, _ = l.chain.link(head, e, nil)
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

// takeOver stores what the journal has and the table has not, a stretch at a time. Records that are not the table's and do not
// continue it, such as after it was replaced by an older one, are told to the log: there is no place for them in the chain.
func (l *Log) takeOver(ctx context.Context) error {
	var next []Entry
	head := l.stored
	orphans := 0
	for line, err := range l.journal.Left() {
		if err != nil {
			return err
		}
		e, err := readLine(line)
		known := err == nil && e.Seq <= head.Seq
		if known {
			known, err = l.has(ctx, next, &e)
			if err != nil {
				return err
			}
		}
		switch {
		case known: // was taken over
		case err == nil && follow(l.chain, head, &e) == nil:
			next = append(next, e)
			head = Head{e.Seq, e.Hash}
		default:
			if orphans++; orphans <= maxOrphans {
				l.log.Error("an audit record of the journal does not continue the log", "record", e, "error", err)
			}
		}
		if len(next) == stretch {
			if _, err := l.insert(next); err != nil {
				return err
			}
			next = next[:0]
		}
	}
	if orphans > 0 {
		l.log.Error("the journal has audit records that do not continue the log; was the state database replaced by an older one?", "records", orphans)
	}
	_, err := l.insert(next)
	return err
}

// has reports whether an entry is one of next, which follow the table, or of the table, or was where it has been pruned.
func (l *Log) has(ctx context.Context, next []Entry, e *Entry) (bool, error) {
	if len(next) > 0 && e.Seq >= next[0].Seq {
		return bytes.Equal(next[e.Seq-next[0].Seq].Hash, e.Hash), nil
	}
	var hash []byte
	err := l.storage.Read().QueryRowContext(ctx, "SELECT hash FROM audit WHERE seq = ?", e.Seq).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return bytes.Equal(hash, e.Hash), err
}

// tableHead is the end of the chain in the table, or of what was pruned if nothing else is there.
func (l *Log) tableHead(ctx context.Context) (h Head, err error) {
	for _, query := range [...]string{"SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1", "SELECT seq, hash FROM audit_checkpoint"} {
		err := l.storage.Read().QueryRowContext(ctx, query).Scan(&h.Seq, &h.Hash)
		if !errors.Is(err, sql.ErrNoRows) {
			return h, err
		}
	}
	return Head{}, nil
}

// loadUnended finds the starts without an end in the table. Only records behind the settled mark can be such.
func (l *Log) loadUnended(ctx context.Context) (err error) {
	err = l.storage.Read().QueryRowContext(ctx, "SELECT seq FROM audit_settled").Scan(&l.settledAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	rows, err := l.storage.Read().QueryContext(ctx, "SELECT seq, kind, call_id FROM audit WHERE seq > ? ORDER BY seq", l.settledAt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e Entry
		if err := rows.Scan(&e.Seq, &e.Kind, &e.CallID); err != nil {
			return err
		}
		l.note(&e)
	}
	return rows.Err()
}

// unfinished lists the starts without an end, as they are in the table.
func (l *Log) unfinished(ctx context.Context) ([]Entry, error) {
	var list []Entry
	for _, seq := range slices.Sorted(maps.Values(l.unended)) {
		var e Entry
		row := l.storage.Read().QueryRowContext(ctx, "SELECT "+columns+" FROM audit WHERE seq = ?", seq)
		if err := e.scan(row.Scan); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}
