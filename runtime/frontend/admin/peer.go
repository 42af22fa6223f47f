package admin

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Peer is the process at the other end of the socket, as the kernel knows it.
type Peer struct {
	PID, UID, GID int
	// Began is when the process began, in the kernel's ticks; 0 where that is not known. A process number is used again
	// once its process has ended, the two together are not.
	Began uint64
}

// gone reports whether the process that connected has ended. Another one may have its number then.
func (p *Peer) gone() bool { return procgroup.Began(p.PID) != p.Began }

// peerInfo carries a Peer through gRPC.
type peerInfo struct {
	credentials.CommonAuthInfo
	Peer Peer
}

// AuthType implements [credentials.AuthInfo].
func (peerInfo) AuthType() string { return "unix-peer" }

// peerCredentials are gRPC transport credentials that ask the kernel who connected. Nothing is encrypted: the bytes do not
// leave the machine.
type peerCredentials struct {
	// other takes a connection that does not speak gRPC, and returns when that has ended. It is the server's.
	other func(conn *incoming, r *bufio.Reader, who Peer)
	// base ends with the server, and with it what is read. gRPC's end waits for handshakes, which may be silent.
	base context.Context
}

// allowed asks the operator's rule about the peer of a call. A refusal is an answer, so that its reason reaches a person.
func (s *Server) allowed(ctx context.Context) error {
	if s.options.Allow == nil {
		return nil
	}
	who, err := peerFrom(ctx)
	if err != nil {
		return err
	}
	return s.allow(who)
}

func (s *Server) allow(who Peer) error {
	if s.options.Allow == nil {
		return nil
	}
	if who.gone() {
		return errGone()
	}
	if err := s.options.Allow(who); err != nil {
		return tool.Errorf(tool.NotGranted, "the admin socket is closed to process %d: %w", who.PID, err)
	}
	return nil
}

// approver asks the operator's rule whether the peer of a call may answer approvals, and returns who it is for the record.
// id is what it wants to answer.
func (s *Server) approver(ctx context.Context, id string) (string, error) {
	who, err := peerFrom(ctx)
	if err != nil {
		return "", err
	}
	if s.options.Approver == nil {
		return "", tool.Errorf(tool.NotGranted, "nobody may answer approvals here")
	}
	name, err := s.options.Approver(who, id)
	if err != nil {
		return "", tool.Errorf(tool.NotGranted, "process %d may not answer approvals: %w", who.PID, err)
	}
	return name, nil
}

func peerFrom(ctx context.Context) (Peer, error) {
	if p, ok := peer.FromContext(ctx); ok {
		info, ok := p.AuthInfo.(peerInfo)
		switch {
		case !ok:
		case info.Peer.gone():
			return Peer{}, errGone()
		default:
			return info.Peer, nil
		}
	}
	return Peer{}, tool.Errorf(tool.NotGranted, "the peer of the admin socket is unknown")
}

func errGone() error {
	return tool.Errorf(tool.NotGranted, "the process that connected to the admin socket has ended, or the daemon has no file descriptor left to look at it with; connect again, and raise the daemon's limit of open files if that does not help")
}

// ServerHandshake implements [credentials.TransportCredentials].
func (c *peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("the admin socket is a unix socket")
	}
	p, err := peerOf(unix)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(c.base, func() { unix.SetReadDeadline(time.Unix(1, 0)) })
	in := &incoming{conn: unix}
	r := bufio.NewReader(in)
	first, err := r.Peek(1)
	if err == nil && first[0] != 'P' { // HTTP/2's preface (RFC 9113, section 3.4)
		c.other(in, r, p)
		stop()
		return nil, nil, credentials.ErrConnDispatched
	}
	if strays, cut := in.seal(); len(strays) > 0 || cut {
		closeAll(strays)
		err = errors.Join(err, errDescriptors)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return &peeked{unix, r, stop}, peerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, p}, nil
}

// peeked is a connection of which something was read ahead.
type peeked struct {
	net.Conn
	r    *bufio.Reader
	stop func() bool // lets the end of the server leave it alone
}

// Read implements [net.Conn].
func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// Close implements [net.Conn].
func (p *peeked) Close() error {
	p.stop()
	return p.Conn.Close()
}

// ClientHandshake implements [credentials.TransportCredentials].
func (*peerCredentials) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// Info implements [credentials.TransportCredentials].
func (*peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix-peer"}
}

// Clone implements [credentials.TransportCredentials].
func (c *peerCredentials) Clone() credentials.TransportCredentials {
	return &peerCredentials{c.other, c.base}
}

// OverrideServerName implements [credentials.TransportCredentials].
func (*peerCredentials) OverrideServerName(string) error { return nil }
