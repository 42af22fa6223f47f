package frontend

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// peer finds out once for a connection whose program is at its other end.
type peer struct {
	once          sync.Once
	local, remote net.Addr
	uid           int
	known         bool
}

type peerKey struct{}

// connContext is [http.Server.ConnContext]: it remembers the connection's ends, so that the peer can be looked up when a
// request needs it.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, &peer{local: c.LocalAddr(), remote: c.RemoteAddr()})
}

// peerUID is the user whose program made the request's connection. It is known only for loopback connections, and only
// where the system tells (Linux).
func peerUID(r *http.Request) (uid int, known bool) {
	p, ok := r.Context().Value(peerKey{}).(*peer)
	if !ok {
		return 0, false
	}
	p.once.Do(func() {
		local, remote := addrPort(p.local), addrPort(p.remote)
		if local.Addr().IsLoopback() && remote.Addr().IsLoopback() {
			p.uid, p.known = socketOwner(remote, local)
		}
	})
	return p.uid, p.known
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
