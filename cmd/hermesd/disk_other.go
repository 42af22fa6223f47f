//go:build !linux

package main

// freeSpace is not available on this system.
func freeSpace(string) finding {
	return finding{"disk", note, "free space is not checked on this system", ""}
}
