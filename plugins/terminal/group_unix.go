//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// lead makes the command the leader of a process group of its own.
func lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { signal(cmd, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { signal(cmd, syscall.SIGKILL) }

func signal(cmd *exec.Cmd, s syscall.Signal) {
	syscall.Kill(-cmd.Process.Pid, s) //nolint:errcheck // the group may have ended, which is what is wanted
}
