package admin

import (
	"context"
	"errors"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// DevPlugin is a plugin that is being written.
type DevPlugin struct {
	Name    string   // the label of its provider
	Command []string // its program and the arguments
	Config  []byte   // a JSON object; nil: that of the configured plugin of the same name, if there is one
	Env     map[string]string
	Grant   []string
}

// Dev makes plugins that are being written providers.
type Dev interface {
	// AttachDev adds a provider. onChange is called, from any goroutine, whenever what it offers changes; it must not block.
	AttachDev(p *DevPlugin, onChange func()) (DevSession, error)
}

// DevSession is one provider that was added.
type DevSession interface {
	provider.Provider
	// Restart starts its program anew.
	Restart()
	// Close removes the provider and waits until its process is gone.
	Close() error
}

// DevAttach implements hermes.admin.v1.
func (s *Server) DevAttach(stream grpc.BidiStreamingServer[adminpb.DevRequest, adminpb.DevEvent]) (err error) {
	if s.options.Dev == nil {
		return tool.Errorf(tool.Unsupported, "this daemon takes no plugins that are being written")
	}
	if err := ownUser(stream.Context()); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	p := first.GetPlugin()
	if len(p.GetCommand()) == 0 {
		return tool.Errorf(tool.BadRequest, "the first request must say which plugin")
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // one is pending already
		}
	}
	session, err := s.options.Dev.AttachDev(&DevPlugin{
		Name: p.GetName(), Command: p.GetCommand(), Config: p.GetConfig(), Env: p.GetEnv(), Grant: p.GetGrant(),
	}, notify)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	ended := make(chan struct{})
	go func() { // ends with the stream, which ends at the latest when this method returns
		defer close(ended)
		for {
			req, err := stream.Recv()
			if err != nil {
				return
			}
			if req.GetReload() != nil {
				session.Restart()
			}
		}
	}()
	return s.tellDev(stream, session, changed, ended)
}

// tellDev sends how the provider does whenever that changed, until the developer has gone.
func (s *Server) tellDev(stream grpc.BidiStreamingServer[adminpb.DevRequest, adminpb.DevEvent], session DevSession, changed, ended <-chan struct{}) error {
	var last *adminpb.DevEvent
	for {
		event := &adminpb.DevEvent{Status: s.statusOf(session)}
		for _, d := range session.Offer().Tools {
			event.Tools = append(event.Tools, d.Name)
		}
		if !proto.Equal(last, event) {
			if err := stream.Send(event); err != nil {
				return err
			}
			last = event
		}
		select {
		case <-changed:
		case <-ended:
			return nil
		case <-stream.Context().Done():
			return tool.Errorf(tool.ShuttingDown, "the daemon is stopping")
		}
	}
}

// ownUser lets only the daemon's own user and root in: whoever names a program to run acts as the daemon's user. Where the
// kernel does not say who the peer is, the socket's mode has to do.
func ownUser(ctx context.Context) error {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return tool.Errorf(tool.NotGranted, "the peer of the admin socket is unknown")
	}
	info, ok := p.AuthInfo.(peerInfo)
	switch {
	case !ok:
		return tool.Errorf(tool.NotGranted, "the peer of the admin socket is unknown")
	case info.Peer.UID == -1, info.Peer.UID == 0, info.Peer.UID == os.Getuid():
		return nil
	}
	return tool.Errorf(tool.NotGranted, "only the daemon's own user and root may attach a plugin: it runs as that user; start a daemon of your own with: hermesd serve")
}
