package procgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
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

// HoldsSocket reports whether a process that was started by this one, directly or through others, holds a socket, given by
// its inode number.
func HoldsSocket(inode uint64) bool {
	if childless() {
		return false
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	below := descendants()
	return slices.ContainsFunc(below, func(pid int) bool { return holds(pid, want) })
}

// childless reports whether this process has no children, ended ones included: then nothing is below it.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// descendants are the processes below this one at the moment.
func descendants() []int {
	family := families()
	below := slices.Clone(family[os.Getpid()])
	for i := 0; i < len(below); i++ {
		below = append(below, family[below[i]]...)
	}
	return below
}

// children are the processes whose parent is pid.
func children(pid int) []int { return families()[pid] }

// families lists every process under its parent, from one look at all of them: the kernel's lists of each thread's children
// cost twenty times as much.
func families() map[int][]int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close() //nolint:errcheck // only read
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	family := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, err := parentOf(pid); err == nil { // else it has ended
			family[parent] = append(family[parent], pid)
		}
	}
	return family
}

func holds(pid int, want string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	open, err := os.Open(dir)
	if err != nil {
		return false // it has ended
	}
	defer open.Close() //nolint:errcheck // only read
	names, err := open.Readdirnames(-1)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		target, err := os.Readlink(dir + "/" + name)
		return err == nil && target == want
	})
}
