//go:build unix

package wire

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a group, so that what it starts can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func killGroup(p *os.Process) {
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil {
		return // nothing is left of it
	}
}

func groupAlive(pid int) bool { return !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) }
