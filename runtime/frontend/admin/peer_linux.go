package admin

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who connected (SO_PEERCRED, unix(7)).
func peerOf(conn *net.UnixConn) (Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("reading the peer's credentials: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return Peer{}, fmt.Errorf("reading the peer's credentials: %w", err)
	}
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid), Began: beganAt(int(cred.Pid))}, nil
}

// startTime is the place of a process's start time in proc_pid_stat(5), counted from the field after its name.
const startTime = 19

// beganAt is when a process began, in clock ticks since the machine did; 0 if there is none of that number.
func beganAt(pid int) uint64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= startTime {
		return 0
	}
	began, err := strconv.ParseUint(fields[startTime], 10, 64)
	if err != nil {
		return 0
	}
	return began
}
