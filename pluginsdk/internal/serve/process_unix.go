//go:build unix

package serve

import "syscall"

// closeOnExec keeps the lifeline from the plugin's own children.
func closeOnExec(fd int) { syscall.CloseOnExec(fd) }

// endGroup kills the process group if this process leads it; children that a tool started go with it.
func endGroup() {
	if pid := syscall.Getpid(); syscall.Getpgrp() == pid {
		if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
			return // the caller exits anyway
		}
	}
}
