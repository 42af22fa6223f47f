package admin

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
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
type peerCredentials struct {
	allow func(Peer) error
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
	if c.allow != nil {
		if err := c.allow(p); err != nil {
			return nil, nil, err
		}
	}
	return conn, peerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, p}, nil
}

// ClientHandshake implements [credentials.TransportCredentials].
func (c *peerCredentials) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// Info implements [credentials.TransportCredentials].
func (c *peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix-peer"}
}

// Clone implements [credentials.TransportCredentials].
func (c *peerCredentials) Clone() credentials.TransportCredentials {
	d := *c
	return &d
}

// OverrideServerName implements [credentials.TransportCredentials].
func (c *peerCredentials) OverrideServerName(string) error { return nil }
