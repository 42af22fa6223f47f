//go:build unix

package daemon

import (
	"fmt"
	"os"
	"syscall"
)

// ownerOf is the user that a process runs under, where the system shows that in /proc.
func ownerOf(pid int) (uid int, known bool) {
	if pid == 0 {
		return 0, false
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return 0, false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(owner.Uid), true
}
