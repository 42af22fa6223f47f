package procgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The places of what is read of proc_pid_stat(5), counted from the field after the name, which may hold anything.
const (
	statParent = 1
	statBegan  = 19
	statFields = statBegan + 1
)

// stat reads the fields of a process after its name. An error means that the process cannot be looked at any more.
func stat(pid int) ([]string, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < statFields {
		return nil, fmt.Errorf("%s is not what proc_pid_stat(5) says", path)
	}
	return fields, nil
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
