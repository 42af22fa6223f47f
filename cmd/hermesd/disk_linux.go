package main

import (
	"fmt"
	"syscall"
)

// fullShare is the share of a disk in use from which doctor warns.
const fullShare = 0.9

// freeSpace looks at the disk that holds a directory.
func freeSpace(dir string) finding {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return finding{"disk", problem, err.Error(), "look at the file system"}
	}
	free := s.Bavail * uint64(s.Bsize)
	text := fmt.Sprintf("%d MiB free where the state is kept", free>>20)
	if s.Blocks > 0 && 1-float64(s.Bavail)/float64(s.Blocks) >= fullShare {
		level := note
		if free < 1<<20 {
			level = problem
		}
		return finding{"disk", level, text, "free some: a full disk stops the audit, and with it every call"}
	}
	return finding{"disk", fine, text, ""}
}
