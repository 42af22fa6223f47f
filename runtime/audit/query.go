package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of one page.
const (
	defaultPage = 100
	maxPage     = 10_000
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

// Query returns one page of records. The next page is asked for with After or Before set to the last one's Seq.
func (l *Log) Query(ctx context.Context, f *Filter) ([]Entry, error) {
	if f == nil {
		f = &Filter{}
	}
	limit := f.Limit
	switch {
	case f.After > 0 && f.Before > 0:
		return nil, fmt.Errorf("audit query: after and before exclude each other")
	case limit < 0 || limit > maxPage:
		return nil, fmt.Errorf("audit query: limit %d is not between 1 and %d", limit, maxPage)
	case limit == 0:
		limit = defaultPage
	}
	clause, args := f.where()
	order := " DESC"
	if f.OldestFirst || f.After > 0 {
		order = ""
	}
	rows, err := l.storage.Read().QueryContext(ctx, "SELECT "+columns+" FROM audit"+clause+" ORDER BY seq"+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("audit query: %w", err)
	}
	return collect(rows)
}

// Export writes the records that f chooses to w, oldest first, one JSON object a line. f's limit and order are not used.
func (l *Log) Export(ctx context.Context, w io.Writer, f *Filter) error {
	return l.pages(ctx, f, func(page []Entry) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for i := range page {
			if err := enc.Encode(&page[i]); err != nil {
				return fmt.Errorf("audit export: %w", err)
			}
		}
		return nil
	})
}

// pages hands all that f chooses to fn, oldest first, up to what is written when it gets there.
func (l *Log) pages(ctx context.Context, f *Filter, fn func([]Entry) error) error {
	next := Filter{}
	if f != nil {
		next = *f
	}
	next.Before, next.OldestFirst, next.Limit = 0, true, maxPage
	for {
		page, err := l.Query(ctx, &next)
		if err != nil {
			return err
		}
		if err := fn(page); err != nil {
			return err
		}
		if len(page) < maxPage {
			return nil
		}
		next.After = page[len(page)-1].Seq
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
		next.After = max(l.Head().Seq, 0)
	}
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		upTo := l.Head().Seq
		err := l.pages(ctx, &next, func(page []Entry) error {
			if len(page) == 0 {
				return nil
			}
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
