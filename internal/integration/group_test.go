package integration

import (
	"os/exec"
	"syscall"
	"testing"
)

// ownGroup lets make and what it starts be ended together.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Log(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Logf("make ended: %v", err)
	}
}
