package audit

import (
	"database/sql/driver"
	"strings"
)

// rows adds entries to the table, many in one statement while there are many: a statement of its own for each row costs a
// quarter more processor time. Its methods are called within Storage.Write.
type rows struct {
	one, many func([]driver.NamedValue) error
	args      []driver.NamedValue // of many; those of one are the first of them
}

const (
	// manyRows is how many rows the larger statement adds. Twice as many cost the same, and a quarter a tenth more.
	manyRows = 64
	// rowColumns is the number of columns.
	rowColumns = 21
	// rowValues are one row's. The columns from args to code are empty as a rule; NULL stands for that, which the driver does
	// not copy.
	rowValues = ",(?,?,?,?,?,?,?,?,?,?,?,ifnull(?,''),ifnull(?,''),ifnull(?,''),ifnull(?,''),ifnull(?,''),ifnull(?,''),ifnull(?,''),?,?,?)"
)

func newRows(storage Storage) (r *rows, err error) {
	r = &rows{args: make([]driver.NamedValue, manyRows*rowColumns)}
	for i := range r.args {
		r.args[i].Ordinal = i + 1
	}
	prepare := func(n int) (func([]driver.NamedValue) error, error) {
		return storage.Prepare("INSERT INTO audit (" + columns + ") VALUES " + strings.Repeat(rowValues, n)[1:])
	}
	if r.one, err = prepare(1); err != nil {
		return nil, err
	}
	r.many, err = prepare(manyRows)
	return r, err
}

func (r *rows) insert(entries []Entry) error {
	defer r.forget()
	for len(entries) > 0 {
		run, n := r.one, 1
		if len(entries) >= manyRows {
			run, n = r.many, manyRows
		}
		args := r.args[:n*rowColumns]
		for i := range n {
			entries[i].bind(args[i*rowColumns:])
		}
		if err := run(args); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// forget lets go of the values of the last rows.
func (r *rows) forget() {
	for i := range r.args {
		r.args[i].Value = nil
	}
}

// bind makes args an entry's columns.
func (e *Entry) bind(args []driver.NamedValue) {
	for i, v := range [rowColumns]driver.Value{
		e.Seq, e.Time.UnixNano(), string(e.Kind), e.CallID, e.Agent, e.Session, string(e.Via), e.Tool, string(e.Source), e.SourceName,
		[]byte(e.ArgsDigest), orNull(e.Args), orNull(string(e.Coerced)), orNull(e.Rule), orNull(e.Approval), orNull(e.By),
		orNull(string(e.Outcome)), orNull(string(e.Code)), int64(e.Duration), []byte(e.ResultDigest), []byte(e.Hash),
	} {
		args[i].Value = v
	}
}

func orNull(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}
