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
	// manyRows is how many rows the larger statement adds. With more a row costs the same.
	manyRows = 16
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
			before := (i + n - 1) % n // the first follows the last of the statement before
			entries[i].bind(args[i*rowColumns:], args[before*rowColumns:])
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

// bind makes args an entry's columns. What it has in common with the row before is taken from there, since it takes room to
// make a text a driver's value.
func (e *Entry) bind(args, before []driver.NamedValue) {
	args[0].Value, args[1].Value = e.Seq, e.Time.UnixNano()
	for i, s := range [...]string{string(e.Kind), e.CallID, e.Agent, e.Session, string(e.Via), e.Tool, string(e.Source), e.SourceName} {
		if i += 2; before[i].Value == s {
			args[i].Value = before[i].Value
		} else {
			args[i].Value = s
		}
	}
	args[10].Value = []byte(e.ArgsDigest)
	for i, s := range [...]string{e.Args, string(e.Coerced), e.Rule, e.Approval, e.By, string(e.Outcome), string(e.Code)} {
		if i += 11; s == "" {
			args[i].Value = nil
		} else {
			args[i].Value = s
		}
	}
	args[18].Value, args[19].Value, args[20].Value = int64(e.Duration), []byte(e.ResultDigest), []byte(e.Hash)
}
