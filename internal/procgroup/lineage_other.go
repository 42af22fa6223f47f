//go:build !linux

package procgroup

// Below is not available here: no process counts as started by this one.
func Below(int) (bool, error) { return false, nil }

// HoldsSocket is not available here: no process counts as holding a socket.
func HoldsSocket(uint64) bool { return false }
