package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// explain adds to a database error what to do about it.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	if advice := s.advice(err); advice != "" {
		return fmt.Errorf("state database %s: %w; %s", s.Path(), err, advice)
	}
	return err
}

func (s *Store) advice(err error) string {
	var e *sqlite.Error
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return full
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return readOnly
	case !errors.As(err, &e):
		return ""
	}
	switch e.Code() & 0xff { // the primary code; the rest is detail
	case sqlite3.SQLITE_FULL:
		return full
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return readOnly
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "the file is damaged: stop the daemon, move it away together with its -wal and -shm files, and restore a backup or start with an empty one"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another process holds it: wait for its end, or end it"
	case sqlite3.SQLITE_IOERR:
		return "the disk failed to read or write: look at the system's log and at the free space"
	}
	return ""
}

const (
	full     = "the disk is full: free some space on it, or set audit { max_size } lower"
	readOnly = "the daemon's user cannot write there: give it the directory and the file, or set another state directory"
)

// ignoreNoTransaction drops the complaint of a rollback after SQLite has rolled back by itself, as it does when the disk
// is full.
func ignoreNoTransaction(err error) error {
	if err != nil && strings.Contains(err.Error(), "no transaction is active") {
		return nil
	}
	return err
}
