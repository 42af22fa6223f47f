//go:build !linux

package store

import "os"

// syncData brings a file's content to the disk.
func syncData(f *os.File) error { return f.Sync() }

// syncNames leaves the names of a folder's files to the system.
func syncNames(string) error { return nil }
