package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// socketMode lets the daemon's user and the socket's group connect.
	socketMode = 0o660
	// maxSocketPath is the longest path of a unix socket (sun_path, unix(7)), without its final zero.
	maxSocketPath = 107
	// probeTime bounds the look whether a daemon answers on a socket.
	probeTime = 2 * time.Second
)

// Listen opens the admin socket, readable and writable for its user and group. What an earlier daemon left behind is
// removed; a socket on which a daemon answers is not.
func Listen(path string) (net.Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("admin socket: %s exists and is no socket; move it away or set listen { admin } to another path", path)
		}
		if conn, err := net.DialTimeout("unix", path, probeTime); err == nil {
			return nil, errors.Join(fmt.Errorf("admin socket: another daemon is listening on %s; stop it first", path), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("admin socket: what an earlier daemon left behind cannot be removed: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w; set listen { admin } to a path in a directory that exists and can be written", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("admin socket: %w", err), l.Close())
	}
	return l, nil
}

// probe says in words why no daemon can be reached.
func probe(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon is listening on %s; start it with `hermesd serve`", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you may not open %s; run the command as the daemon's user, or join the socket's group", path)
	default:
		return fmt.Errorf("no daemon was reached on %s: %w", path, err)
	}
}

func checkPath(path string) error {
	if path == "" {
		return errors.New("the admin socket has no path; set listen { admin } in the configuration")
	}
	if len(path) > maxSocketPath {
		return fmt.Errorf("the path of the admin socket is too long (%d bytes, at most %d): %s; set listen { admin } to a shorter one", len(path), maxSocketPath, path)
	}
	return nil
}
