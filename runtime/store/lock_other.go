//go:build !unix

package store

import "os"

// lock is not available on this system: two daemons on one state directory are only kept apart by SQLite's own locks.
type lock struct{}

func acquire(string) (*lock, error) { return &lock{}, nil }

func (*lock) release() error { return nil }

// lockFile is not available on this system: it takes nothing.
func lockFile(*os.File) error { return nil }

// isHeld is of no use where nothing is ever held.
func isHeld(error) bool { return false }
