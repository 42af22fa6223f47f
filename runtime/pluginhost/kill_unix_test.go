//go:build unix

package pluginhost_test

import "syscall"

func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
