package procgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxGenerations bounds a walk through the processes' parents: numbers may be used again while it goes on.
const maxGenerations = 4096

// Below reports whether a process was started by this one, directly or through others: also by a program whose parent has
// ended, since the shim above it takes its orphans. An error means that the process cannot be looked at any more.
func Below(pid int) (bool, error) {
	self := os.Getpid()
	if pid == self {
		return false, nil
	}
	for range maxGenerations {
		if pid <= 0 {
			return false, nil
		}
		parent, err := parentOf(pid)
		if err != nil {
			return false, err
		}
		if parent == self {
			return true, nil
		}
		pid = parent
	}
	return false, errors.New("the processes' parents go round")
}

// parentOf reads the fourth field of proc_pid_stat(5). The second one, the name, may hold anything.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat is not what proc_pid_stat(5) says", pid)
	}
	return strconv.Atoi(fields[1])
}

// HoldsSocket reports whether a process that was started by this one, directly or through others, holds a socket, given by
// its inode number.
func HoldsSocket(inode uint64) bool {
	want := fmt.Sprintf("socket:[%d]", inode)
	seen := map[int]bool{}
	todo := children(os.Getpid())
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		if holds(pid, want) {
			return true
		}
		todo = append(todo, children(pid)...)
	}
	return false
}

func holds(pid int, want string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && target == want {
			return true
		}
	}
	return false
}

// children are the processes whose parent is pid, as far as the kernel lists them.
func children(pid int) []int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}
