//go:build !unix

package wire

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: there are no process groups here, and what a plugin starts is not seen.
func ownGroup(*exec.Cmd) {}

// terminate kills: there is no signal that asks.
func terminate(p *os.Process) error { return p.Kill() }

func killGroup(p *os.Process) {
	if err := p.Kill(); err != nil {
		return // it has ended
	}
}

func groupAlive(int) bool { return false }
