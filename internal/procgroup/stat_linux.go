package procgroup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The places of what is read of proc_pid_stat(5), counted from the field after the name, which may hold anything.
const (
	statParent = 1
	statBegan  = 19
	statFields = statBegan + 1
)

// maxStat is more than the kernel writes there: a name and fifty numbers.
const maxStat = 4 << 10

// stat reads the fields of a process after its name. An error means that the process cannot be looked at any more.
func stat(pid int) ([]string, error) {
	var buffer [maxStat]byte
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	n, err := readOnce(path, buffer[:])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text := string(buffer[:n])
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < statFields {
		return nil, fmt.Errorf("%s is not what proc_pid_stat(5) says", path)
	}
	return fields, nil
}

// readOnce reads a file that the kernel makes up as it is read. Without what [os.Open] prepares for files that may keep a
// reader waiting, a look at every process takes half the time.
func readOnce(path string, buffer []byte) (n int, err error) {
	fd, err := uninterrupted(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return 0, err
	}
	n, err = uninterrupted(func() (int, error) { return unix.Read(fd, buffer) })
	return n, errors.Join(err, unix.Close(fd))
}

// uninterrupted makes a system call again that a signal broke off.
func uninterrupted(call func() (int, error)) (n int, err error) {
	for n, err = call(); errors.Is(err, unix.EINTR); n, err = call() {
	}
	return n, err
}

// Began is when a process began, in clock ticks since the machine did; 0 if there is none of that number. A number is used
// again once its process has ended, the two together are not.
func Began(pid int) uint64 {
	fields, err := stat(pid)
	if err != nil {
		return 0
	}
	began, err := strconv.ParseUint(fields[statBegan], 10, 64)
	if err != nil {
		return 0
	}
	return began
}

func parentOf(pid int) (int, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[statParent])
}
