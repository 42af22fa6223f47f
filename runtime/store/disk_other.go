//go:build !unix

package store

// DiskUsed is not available on this system: it is always 0.
func (s *Store) DiskUsed() (float64, error) { return 0, nil }
