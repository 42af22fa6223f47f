package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/functions"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
)

// fronts are the front ends and what they listen on.
type fronts struct {
	desk     *frontend.Desk
	logger   *slog.Logger
	mcp      *mcp.Server
	http     *http.Server // nil where nothing listens
	handling sync.RWMutex // held for reading by every HTTP request that is being answered
	admin    *admin.Server

	httpListener, adminListener net.Listener
	url                         string
}

// newFronts makes the front ends and binds their addresses, so that a port in use is known before anything runs.
func (d *Daemon) newFronts() (_ *fronts, err error) {
	f := &fronts{desk: d.desk, logger: d.logger}
	listen := &d.cfg.Listen
	hosts, origins := slices.Clone(listen.AllowedHosts), slices.Clone(listen.AllowedOrigins)
	if public, err := url.Parse(listen.PublicURL); err == nil && public.Host != "" {
		hosts, origins = append(hosts, public.Hostname()), append(origins, public.Scheme+"://"+public.Host)
	}
	gate := frontend.NewGate(d.agents, &frontend.GateOptions{
		AllowedHosts: hosts, AllowedOrigins: origins,
		MaxBody: int64(listen.MaxRequestBytes), Vet: d.peers.vet, Logger: d.logger,
	})
	f.mcp, err = mcp.New(&mcp.Options{
		Desk: d.desk, Gate: gate, Version: d.options.Version,
		MaxSessions: listen.MaxSessions, SessionIdle: listen.SessionIdle, Logger: d.logger,
	})
	if err != nil || d.options.Standalone {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.unbind())
		}
	}()
	if listen.HTTP != "off" {
		calls, err := functions.New(&functions.Options{Desk: d.desk, Gate: gate, Results: d.results, Healthy: d.healthy, Logger: d.logger})
		if err != nil {
			return nil, err
		}
		mux := http.NewServeMux()
		mux.Handle(mcp.Path, d.via.handler(f.mcp.Handler()))
		mux.Handle("/", calls.Handler())
		mux.Handle(approval.LinkPath, gate.Public(d.approvals.Links()))
		f.http = frontend.NewHTTPServer(f.counted(mux), &frontend.ServerOptions{MaxHeaderBytes: int(listen.MaxHeaderBytes), Logger: d.logger})
		if f.httpListener, f.url, err = listenHTTP(listen); err != nil {
			return nil, err
		}
	}
	f.admin, err = admin.New(d.adminOptions(f))
	if err != nil {
		return nil, err
	}
	f.adminListener, err = admin.Listen(listen.Admin)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func listenHTTP(listen *config.Listen) (net.Listener, string, error) {
	listener, err := net.Listen("tcp", listen.HTTP)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, "", fmt.Errorf("%w: another program listens there, perhaps a hermesd that is running already; stop it, or set listen { http } to another port", err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: set listen { http } to an address of this machine", err)
	}
	base := "http://" + listener.Addr().String()
	// Below TLS, so that net/http has the connection that it knows: the handshake has its time limit, and requests tell that
	// they came encrypted.
	listener = frontend.LimitListener(listener, listen.MaxConnections)
	if listen.TLS != nil {
		certificate, err := tls.LoadX509KeyPair(listen.TLS.Cert, listen.TLS.Key)
		if err != nil {
			return nil, "", errors.Join(fmt.Errorf("listen { tls }: %w", err), listener.Close())
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		base = "https://" + listener.Addr().String()
	}
	return listener, base, nil
}

// counted lets the end of a stop wait for a handler's requests.
func (f *fronts) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.handling.RLock()
		defer f.handling.RUnlock()
		h.ServeHTTP(w, r)
	})
}

// serve runs what listens, until close.
func (f *fronts) serve(group *errgroup.Group) {
	if f.httpListener != nil {
		group.Go(func() error {
			if err := f.http.Serve(f.httpListener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("http: %w", err)
			}
			return nil
		})
	}
	if f.adminListener != nil {
		group.Go(func() error { return f.admin.Serve(f.adminListener) })
	}
}

// refresh tells agents whose tools changed.
func (f *fronts) refresh() { f.mcp.Refresh() }

// close takes no new calls, lets running ones end until ctx does, and ends the rest.
func (f *fronts) close(ctx context.Context) error {
	var group errgroup.Group
	if f.http != nil {
		// It stops accepting at once, and then waits for streams that only the MCP front end lets go.
		group.Go(func() error { return f.http.Shutdown(ctx) })
	}
	if f.admin != nil {
		f.admin.Release()
	}
	f.mcp.EndTasks()
	f.desk.Drain(ctx)
	group.Go(func() error { return f.mcp.Close(ctx) })
	err := group.Wait()
	if f.admin != nil {
		err = errors.Join(err, f.admin.Close())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		f.logger.Debug("calls were still running at shutdown_timeout")
		return f.abort()
	}
	return err
}

// abort takes the connections from HTTP requests that are still being answered, which ends them, and waits a moment for
// that: what they use is closed next.
func (f *fronts) abort() error {
	if f.http == nil {
		return nil
	}
	err := f.http.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.handling.Lock()
		defer f.handling.Unlock()
	}()
	select {
	case <-ended:
	case <-time.After(lastGrace / 3):
		f.logger.Warn("an HTTP request does not end although its connection is closed")
	}
	return err
}

// unbind gives back addresses of front ends that were never served.
func (f *fronts) unbind() error {
	var errs []error
	for _, l := range []net.Listener{f.httpListener, f.adminListener} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// Addresses are where the daemon can be reached; "" where it cannot.
type Addresses struct {
	HTTP  string // base URL
	Admin string // path of the socket
}

// Addresses tells where the daemon listens. It is for after [Daemon.Ready].
func (d *Daemon) Addresses() Addresses {
	a := Addresses{HTTP: d.fronts.url}
	if d.fronts.adminListener != nil {
		a.Admin = d.cfg.Listen.Admin
	}
	return a
}
