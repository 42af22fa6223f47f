package procgroup

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaders are the children of this process that [Start] started and will reap itself. Like the kernel's list of children,
// which it is held against, it is one for the process.
var leaders = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// startLeader starts a process whose end only [Process.watch] learns of.
func startLeader(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	leaders.Lock()
	defer leaders.Unlock()
	p, err := os.StartProcess(path, argv, attr)
	if err == nil {
		leaders.pids[p.Pid] = true
	}
	return p, err
}

// waitLeader reaps it.
func waitLeader(p *os.Process) (*os.ProcessState, error) {
	state, err := p.Wait()
	leaders.Lock()
	defer leaders.Unlock()
	delete(leaders.pids, p.Pid)
	return state, err
}

// Adopt makes this process the parent of every process below it whose own parent ends, until ctx does, so that [Below]
// knows them all: also those that escaped from a shim that was killed. It reaps them. All other children must have been
// started by [Start]: the exit status of any other would be lost.
func Adopt(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		defer signal.Stop(ended)
		for {
			select {
			case <-ended:
				reapOrphans()
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func reapOrphans() {
	leaders.Lock()
	defer leaders.Unlock()
	for _, pid := range children(os.Getpid()) {
		if !leaders.pids[pid] {
			unix.Wait4(pid, nil, unix.WNOHANG, nil) //nolint:errcheck // one that still runs, or has gone, is none of this
		}
	}
}
