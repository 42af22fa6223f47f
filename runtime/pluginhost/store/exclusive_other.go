//go:build !unix

package store

import "os"

// exclusively runs f; this system has no lock that ends with its process, so that two commands at once may undo each other.
func exclusively(dir string, f func() error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return f()
}
