package admin

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/internal/procgroup"
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
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid), Began: procgroup.Began(int(cred.Pid))}, nil
}
