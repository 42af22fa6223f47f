//go:build unix

package store

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// DiskUsed is the share of the state directory's disk that is taken, from 0 to 1.
func (s *Store) DiskUsed() (float64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return 0, fmt.Errorf("state directory %s: %w", s.dir, err)
	}
	if st.Blocks == 0 {
		return 0, nil
	}
	used := float64(st.Blocks - st.Bfree)
	return used / (used + float64(st.Bavail)), nil // what is kept for root is not the daemon's
}
