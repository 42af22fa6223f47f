package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Writer is a connection for writing. All writers of a store take turns.
type Writer struct {
	store                   *Store
	power                   bool
	db                      *sql.DB
	conn                    *sql.Conn
	begin, commit, rollback *sql.Stmt // kept, since parsing them costs more than running them
}

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
	for text, stmt := range map[string]**sql.Stmt{"BEGIN IMMEDIATE": &w.begin, "COMMIT": &w.commit, "ROLLBACK": &w.rollback} {
		if *stmt, err = conn.PrepareContext(context.Background(), text); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	s.mu.Lock()
	s.writers = append(s.writers, w)
	s.mu.Unlock()
	return w, nil
}

// Write runs fn in a transaction: all of it happens or, if fn fails, nothing. The connection is always the same, so that
// statements may be prepared on it once and kept. ctx bounds the wait for the turn; the transaction itself is not torn.
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
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	committed := false
	defer func() { // also when fn panics
		if !committed {
			_, undo := w.rollback.ExecContext(ctx)
			err = errors.Join(err, ignoreNoTransaction(undo))
		}
	}()
	if err := fn(ctx, w.conn); err != nil {
		return err
	}
	if _, err := w.commit.ExecContext(ctx); err != nil {
		return err
	}
	committed = true
	return nil
}

// Read returns the store's connections for reading.
func (w *Writer) Read() *sql.DB { return w.store.read }

func (w *Writer) close() error {
	return errors.Join(w.conn.Close(), w.db.Close())
}
