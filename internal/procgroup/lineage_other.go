//go:build !linux

package procgroup

// Below is not available here: no process counts as started by this one.
func Below(int) (bool, error) { return false, nil }

// Began is not available here: no process is told from another one that had its number.
func Began(int) uint64 { return 0 }

// HoldsSocket is not available here: no process counts as holding a socket.
func HoldsSocket(uint64) bool { return false }
