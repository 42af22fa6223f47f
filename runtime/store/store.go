// Package store is the one embedded database: SQLite, in one file of the state directory.
//
// One daemon has it at a time. Reads use connections of their own and never wait for a write; writes go one after another.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// Name is the database's file in the state directory.
const Name = "state.db"

const (
	defaultBusyTimeout = 5 * time.Second
	readers            = 4
)

// Options configure a store. The zero value works.
type Options struct {
	// BusyTimeout is how long a statement waits for another process, such as a backup; 0 is 5 s.
	BusyTimeout time.Duration
	// Logger is told of migrations; nil discards it.
	Logger *slog.Logger
}

// Store is an open database. It may be used from any goroutine.
type Store struct {
	dir   string
	lock  *lock
	busy  time.Duration
	read  *sql.DB
	write *Writer
	turn  chan struct{} // holds a token while nobody writes

	mu       sync.Mutex
	writers  []*Writer
	journals []*Journal
}

// Open opens the database in dir, and creates both where missing. It refuses a directory that another daemon uses, naming
// its pid, and a database that a newer version wrote; one of an older version is migrated after it has been copied.
func Open(dir string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w; create it for the daemon's user, or set another state directory", err)
	}
	held, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: held, busy: cmp.Or(opts.BusyTimeout, defaultBusyTimeout), turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	if err := s.open(opts.Logger); err != nil {
		return nil, errors.Join(s.explain(err), s.Close())
	}
	return s, nil
}

func (s *Store) open(log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	// SQLite would create the file for all to read.
	f, err := os.OpenFile(s.Path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if s.write, err = s.writer(true); err != nil {
		return err
	}
	steps, err := migrations()
	if err != nil {
		return err
	}
	if err := migrate(s.write, s.Path(), steps, log); err != nil {
		return err
	}
	s.read, err = s.connect("query_only(1)")
	if err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	return s.read.Ping()
}

// connect makes a pool of connections with some pragmas of their own.
func (s *Store) connect(pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", s.busy.Milliseconds()),
		"foreign_keys(1)",
		"journal_size_limit(67108864)", // a write-ahead log that grew large is cut when it is reset
	}, pragmas...)}
	c, err := sqlite.NewConnector((&url.URL{Scheme: "file", OmitHost: true, Path: s.Path(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Path is the database's file.
func (s *Store) Path() string { return filepath.Join(s.dir, Name) }

// Dir is the state directory.
func (s *Store) Dir() string { return s.dir }

// Read returns the connections for reading. They cannot write.
func (s *Store) Read() *sql.DB { return s.read }

// Write runs fn in a transaction that survives the loss of power once Write has returned nil. Keep fn short: one
// transaction runs at a time.
func (s *Store) Write(ctx context.Context, fn func(ctx context.Context, c *sql.Conn) error) error {
	return s.write.Write(ctx, fn)
}

// Close closes the database and lets the next daemon in, once the write that runs has ended. Writers, readers and journals end
// with it. It may be called twice.
func (s *Store) Close() error {
	<-s.turn // a prepared statement that ran on would read what closing it frees
	defer func() { s.turn <- struct{}{} }()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, w := range s.writers {
		errs = append(errs, w.close())
	}
	for _, j := range s.journals {
		errs = append(errs, j.close())
	}
	s.writers, s.journals = nil, nil
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	return errors.Join(append(errs, s.lock.release())...)
}
