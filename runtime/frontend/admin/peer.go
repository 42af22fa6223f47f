package admin

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Peer is the process at the other end of the socket, as the kernel knows it.
type Peer struct {
	PID, UID, GID int
}

// peerInfo carries a Peer through gRPC.
type peerInfo struct {
	credentials.CommonAuthInfo
	Peer Peer
}

// AuthType implements [credentials.AuthInfo].
func (peerInfo) AuthType() string { return "unix-peer" }

// peerCredentials are gRPC transport credentials that ask the kernel who connected. Nothing is encrypted: the bytes do not
// leave the machine.
type peerCredentials struct{}

// allowed asks the operator's rule about the peer of a call. A refusal is an answer, so that its reason reaches a person.
func (s *Server) allowed(ctx context.Context) error {
	if s.options.Allow == nil {
		return nil
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return tool.Errorf(tool.NotGranted, "the peer of the admin socket is unknown")
	}
	info, ok := p.AuthInfo.(peerInfo)
	if !ok {
		return tool.Errorf(tool.NotGranted, "the peer of the admin socket is unknown")
	}
	if err := s.options.Allow(info.Peer); err != nil {
		return tool.Errorf(tool.NotGranted, "the admin socket is closed to process %d: %w", info.Peer.PID, err)
	}
	return nil
}

// ServerHandshake implements [credentials.TransportCredentials].
func (*peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("the admin socket is a unix socket")
	}
	p, err := peerOf(unix)
	if err != nil {
		return nil, nil, err
	}
	return conn, peerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, p}, nil
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
func (*peerCredentials) Clone() credentials.TransportCredentials {
	return &peerCredentials{}
}

// OverrideServerName implements [credentials.TransportCredentials].
func (*peerCredentials) OverrideServerName(string) error { return nil }
