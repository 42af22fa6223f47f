package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Writer is a connection for writing. All writers of a store take turns.
type Writer struct {
	store                   *Store
	power                   bool
	db                      *sql.DB
	conn                    *sql.Conn
	prepared                []driver.Stmt // to be closed, or SQLite keeps the connection
	begin, commit, rollback run           // kept, since parsing them costs more than running them
}

// run runs a statement that was prepared.
type run = func(args []driver.NamedValue) error

// Writer makes a connection whose transactions survive the loss of power, or only the death of the process, which is
// faster. Neither can leave the database damaged. The store closes it.
func (s *Store) Writer(power bool) (*Writer, error) {
	w, err := s.writer(power)
	return w, s.explain(err)
}

func (s *Store) writer(power bool) (*Writer, error) {
	sync := "synchronous(NORMAL)" // the log is synced when it is copied into the file, not at each commit
	if power {
		sync = "synchronous(FULL)"
	}
	db, err := s.connect("auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "wal_autocheckpoint(2000)", sync)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &Writer{store: s, power: power, db: db, conn: conn}
	for text, stmt := range map[string]*run{"BEGIN IMMEDIATE": &w.begin, "COMMIT": &w.commit, "ROLLBACK": &w.rollback} {
		if *stmt, err = w.prepare(text); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	s.mu.Lock()
	s.writers = append(s.writers, w)
	s.mu.Unlock()
	return w, nil
}

// Write runs fn in a transaction: all of it happens or, if fn fails, nothing. The connection is always the same. ctx bounds
// the wait for the turn; the transaction itself is not torn.
func (w *Writer) Write(ctx context.Context, fn func(ctx context.Context, c *sql.Conn) error) error {
	select {
	case <-w.store.turn:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the state database: %w", ctx.Err())
	}
	defer func() { w.store.turn <- struct{}{} }()
	return w.store.explain(w.transact(context.WithoutCancel(ctx), fn))
}

func (w *Writer) transact(ctx context.Context, fn func(context.Context, *sql.Conn) error) (err error) {
	if err := w.begin(nil); err != nil {
		return err
	}
	committed := false
	defer func() { // also when fn panics
		if !committed {
			err = errors.Join(err, ignoreNoTransaction(w.rollback(nil)))
		}
	}()
	if err := fn(ctx, w.conn); err != nil {
		return err
	}
	if err := w.commit(nil); err != nil {
		return err
	}
	committed = true
	return nil
}

// Prepare parses a statement for many runs within [Writer.Write]. What it returns runs it and goes to the driver past
// database/sql, which takes as long to look at the values of a row as the driver to bind them: args are numbered from 1,
// without names, and each is an int64, a string, a []byte or nil. The statement ends with the store.
func (w *Writer) Prepare(query string) (run func(args []driver.NamedValue) error, err error) {
	run, err = w.prepare(query)
	return run, w.store.explain(err)
}

func (w *Writer) prepare(query string) (run, error) {
	var stmt driver.Stmt
	err := w.conn.Raw(func(c any) (err error) {
		stmt, err = c.(driver.Conn).Prepare(query)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.store.mu.Lock()
	w.prepared = append(w.prepared, stmt)
	w.store.mu.Unlock()
	exec := stmt.(driver.StmtExecContext)
	return func(args []driver.NamedValue) error {
		return w.conn.Raw(func(any) error {
			_, err := exec.ExecContext(context.Background(), args)
			return err
		})
	}, nil
}

// Read returns the store's connections for reading.
func (w *Writer) Read() *sql.DB { return w.store.read }

func (w *Writer) close() error {
	err := w.conn.Raw(func(any) (err error) {
		for _, stmt := range w.prepared {
			err = errors.Join(err, stmt.Close())
		}
		return err
	})
	return errors.Join(err, w.conn.Close(), w.db.Close())
}
