package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of one page, in records and in bytes: a page is one message to an operator's program, which takes 64 MiB.
const (
	defaultPage   = 100
	maxPage       = 10_000
	maxPageBytes  = 4 << 20
	maxQueryBytes = 32 << 20
	entryBytes    = 1 << 10 // what a record has besides its texts, more or less
)

// Filter chooses records. Fields that are zero choose all.
type Filter struct {
	Agent   string
	Tool    tool.Name
	Outcome tool.Outcome
	Kind    tool.RecordKind
	CallID  string
	Since   time.Time // inclusive
	Until   time.Time // exclusive
	// After chooses what follows a record in the chain, oldest first; Before what precedes one, newest first. At most one
	// of the two is set.
	After, Before int64
	// OldestFirst orders by age where neither After nor Before does; the default is newest first.
	OldestFirst bool
	Limit       int // 0 is 100, at most 10,000
}

// where is the filter as SQL.
func (f *Filter) where() (clause string, args []any) {
	var terms []string
	add := func(term string, arg any) {
		terms = append(terms, term)
		args = append(args, arg)
	}
	for _, eq := range [...]struct{ column, value string }{
		{"agent", f.Agent}, {"tool", f.Tool}, {"outcome", string(f.Outcome)}, {"kind", string(f.Kind)}, {"call_id", f.CallID},
	} {
		if eq.value != "" {
			add(eq.column+" = ?", eq.value)
		}
	}
	if !f.Since.IsZero() {
		add("time >= ?", f.Since.UnixNano())
	}
	if !f.Until.IsZero() {
		add("time < ?", f.Until.UnixNano())
	}
	if f.After > 0 {
		add("seq > ?", f.After)
	}
	if f.Before > 0 {
		add("seq < ?", f.Before)
	}
	if len(terms) > 0 {
		clause = " WHERE " + strings.Join(terms, " AND ")
	}
	return clause, args
}

// Query returns one page of records, of all that has happened until now; while the table cannot be written, of those that
// it has. The next page is asked for with After or Before set to the last one's Seq.
func (l *Log) Query(ctx context.Context, f *Filter) ([]Entry, error) {
	if f == nil {
		f = &Filter{}
	}
	switch {
	case f.After > 0 && f.Before > 0:
		return nil, fmt.Errorf("audit query: after and before exclude each other")
	case f.Limit < 0 || f.Limit > maxPage:
		return nil, fmt.Errorf("audit query: limit %d is not between 1 and %d", f.Limit, maxPage)
	}
	l.catchUp()
	page, more, err := l.page(ctx, f, cmp.Or(f.Limit, defaultPage), maxQueryBytes)
	if err == nil && more {
		return nil, fmt.Errorf("audit query: so many records with their arguments have more than %d MiB: ask for at most %d, or export them", maxQueryBytes>>20, len(page))
	}
	return page, err
}

// page reads at most limit records, and not many more bytes than size; more tells that it ended for the sake of size.
func (l *Log) page(ctx context.Context, f *Filter, limit, size int) (page []Entry, more bool, err error) {
	clause, args := f.where()
	order := " DESC"
	if f.OldestFirst || f.After > 0 {
		order = ""
	}
	rows, err := l.storage.Read().QueryContext(ctx, "SELECT "+columns+" FROM audit"+clause+" ORDER BY seq"+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, false, fmt.Errorf("audit query: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if size <= 0 {
			return page, true, nil
		}
		var e Entry
		if err := e.scan(rows.Scan); err != nil {
			return nil, false, fmt.Errorf("audit query: %w", err)
		}
		page = append(page, e)
		size -= entryBytes + e.size() + len(e.Args) // in JSON each quote of the arguments takes two
	}
	if err := rows.Err(); err != nil {
		return nil, false, fmt.Errorf("audit query: %w", err)
	}
	return page, false, nil
}

// Export hands all records that f chooses to fn, oldest first, in pages of a few MiB, up to what is in the table when it gets
// there, which all that has happened until now is, as for [Log.Query]. f's limit and order are not used.
func (l *Log) Export(ctx context.Context, f *Filter, fn func([]Entry) error) error {
	l.catchUp()
	return l.export(ctx, f, fn)
}

func (l *Log) export(ctx context.Context, f *Filter, fn func([]Entry) error) error {
	next := Filter{}
	if f != nil {
		next = *f
	}
	next.Before, next.OldestFirst = 0, true
	for {
		page, more, err := l.page(ctx, &next, maxPage, maxPageBytes)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := fn(page); err != nil {
			return err
		}
		if !more && len(page) < maxPage {
			return nil
		}
		next.After = page[len(page)-1].Seq
	}
}

// catchUp has readers find all that has happened. Where that fails, the fault is told elsewhere, and they find the rest.
func (l *Log) catchUp() {
	if err := l.sync(); err != nil {
		l.log.Debug("audit records that wait are not to be read yet", "error", err)
	}
}

// Tail hands the records that f chooses to fn as they are written, beginning with those after f.After, or with the next
// one if that is 0, until ctx ends or fn fails. It returns nil when ctx has ended.
func (l *Log) Tail(ctx context.Context, f *Filter, fn func([]Entry) error) error {
	next := Filter{}
	if f != nil {
		next = *f
	}
	if next.After == 0 {
		l.catchUp()
		next.After = l.storedHead().Seq
	}
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		upTo := l.storedHead().Seq
		err := l.export(ctx, &next, func(page []Entry) error {
			upTo = max(upTo, page[len(page)-1].Seq)
			return fn(page)
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		next.After = upTo // so that what the filter leaves out is not looked at again
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
