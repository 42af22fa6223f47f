//go:build !linux

package procgroup

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"github.com/hermesd/hermesd/internal/confine"
)

// start runs the program without a group: other systems get no more than the process itself, and a lifeline.
func start(cmd *Command) (*Process, error) {
	ends, err := openPipes(cmd.WantStdin)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer ends.closeChild()
	files, env := append(ends.child, cmd.ExtraFiles...), cmd.Env
	if cmd.Lifeline {
		env = append(env[:len(env):len(env)], LifelineEnv+"="+strconv.Itoa(len(files)))
		files = append(files, ends.lifelineRead)
	}
	leader, err := os.StartProcess(cmd.Path, append([]string{cmp.Or(cmd.Name, cmd.Path)}, cmd.Args...), &os.ProcAttr{Dir: cmd.Dir, Env: env, Files: files})
	if err != nil {
		ends.closeAll()
		return nil, fmt.Errorf("start program: %w", err)
	}
	p := &Process{
		leader: leader, pid: leader.Pid, containment: ContainedByGroup, networked: true,
		stdout: ends.stdout, stderr: ends.stderr, lifeline: ends.lifeline, done: make(chan struct{}),
	}
	if cmd.Confine != nil {
		p.layers = cmd.Confine.Apply(confine.Surroundings{})
	}
	if ends.stdin != nil {
		p.stdin = ends.stdin
	}
	go func() {
		exit := Exit{Code: -1}
		if state, err := leader.Wait(); err == nil {
			exit.Code = state.ExitCode()
		}
		p.ended(exit)
	}()
	return p, nil
}

func (p *Process) terminate() {
	p.leader.Signal(os.Interrupt) //nolint:errcheck // not every system has it; the kill follows
}

func (p *Process) kill() {
	p.leader.Kill() //nolint:errcheck // it may have ended
}

// ShimMain does nothing: only Linux has the shim.
func ShimMain() {}
