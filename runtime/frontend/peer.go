package frontend

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/hermesd/hermesd/runtime/tool"
)

// peer finds out once for a connection whose program is at its other end.
type peer struct {
	once          sync.Once
	local, remote net.Addr
	found         Peer
	known         bool

	vetting sync.Once
	refused error
}

// Peer is the program at the other end of a connection on this machine.
type Peer struct {
	UID int
	// Socket is the inode number of its end of the connection: the processes that hold it have a link to it in
	// /proc/PID/fd (proc_pid_fd(5)).
	Socket uint64
}

type peerKey struct{}

// connContext is [http.Server.ConnContext]: it remembers the connection's ends, so that the peer can be looked up when a
// request needs it.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, &peer{local: c.LocalAddr(), remote: c.RemoteAddr()})
}

// peerOf is the program that made the request's connection. It is known only for loopback connections, and only where the
// system tells (Linux).
func peerOf(r *http.Request) (found Peer, known bool) {
	p, ok := r.Context().Value(peerKey{}).(*peer)
	if !ok {
		return Peer{}, false
	}
	p.once.Do(func() {
		local, remote := addrPort(p.local), addrPort(p.remote)
		if local.Addr().IsLoopback() && remote.Addr().IsLoopback() {
			p.found, p.known = socketOwner(remote, local)
		}
	})
	return p.found, p.known
}

// vet asks once for a connection whether its peer may be the local agent.
func vet(r *http.Request, ask func(Peer) error) error {
	p, ok := r.Context().Value(peerKey{}).(*peer)
	if !ok {
		return tool.Errorf(tool.Unauthenticated, "a token is needed")
	}
	p.vetting.Do(func() { p.refused = ask(p.found) })
	return p.refused
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
