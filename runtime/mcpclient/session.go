package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// relistPause is the least time between two readings of a list that keeps changing.
	relistPause = 200 * time.Millisecond
	// logsPatience bounds the wait for a server to take the log level, which it need not do.
	logsPatience = time.Second
	// lastInitialize is the newest protocol that begins with initialize.
	lastInitialize = "2025-11-25"
)

// session is one connection to a server that has shaken hands and listed its tools: the supervisor's instance.
type session struct {
	p       *Provider
	line    *line
	process *procgroup.Process // nil for a server over HTTP
	stderr  *procgroup.TailBuffer
	modern  bool // the protocol is 2026-07-28 or later
	sdk     *mcp.ClientSession
	has     *mcp.ServerCapabilities
	// Capacity 1 each: the list of tools changed, or those of resources and prompts.
	changed, restocked chan struct{}
	logs               chan struct{} // closed when the server has taken the log level or refused it; nil if it has none
	loops              sync.WaitGroup
	gone               chan struct{}
}

// start connects within ctx and publishes the server's tools.
func (p *Provider) start(ctx context.Context) (*session, error) {
	s, err := p.connect(ctx, p.opts.Sessions || p.legacy.Load())
	if err != nil {
		return nil, err
	}
	tools, err := s.listTools(ctx)
	if err != nil {
		err = s.explain(p.late(ctx, err))
		s.Stop(ctx)
		return nil, err
	}
	s.awaitLogs(ctx)
	p.publish(tools)
	s.line.goWork(func() { s.relist(s.changed, s.relistTools) })
	if p.opts.Resources || p.opts.Prompts {
		s.noteChange("resources")
		s.line.goWork(func() { s.relist(s.restocked, s.relistShelf) })
		s.line.goWork(s.resubscribe)
	}
	return s, nil
}

// late says in the operator's words that a start took too long, if it did.
func (p *Provider) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not ready within connect_timeout (%v): %w", p.opts.ConnectTimeout, err)
	}
	return err
}

// connect makes a connection and shakes hands. A server that a request of the newest protocol kills is connected to again
// with the older handshake, and so is one that is known to need it or that the operator wants it for. An exchange over HTTP
// that breaks is first taken for what it mostly is, a server that is about to come or go, and fails the attempt; the next one
// may take the server for an older one.
func (p *Provider) connect(ctx context.Context, legacy bool) (*session, error) {
	s := &session{p: p, line: newLine(p.said, p.opts.ConnectTimeout/3), changed: make(chan struct{}, 1), restocked: make(chan struct{}, 1), gone: make(chan struct{})}
	s.line.updated, s.line.changed = p.watch.tell, s.noteChange
	s.line.strict = !p.doubted.Load() && !p.probe
	opening := p.step("connect")
	if p.opts.URL == "" {
		opening = p.step("start")
	}
	err := s.open(ctx)
	opening(err)
	if err != nil {
		s.line.fail(errStopped)
		return nil, err
	}
	go s.bury()
	shaking := p.step("handshake")
	err = s.shakeHands(ctx, legacy)
	shaking(err)
	p.doubted.Store(s.line.unasked.Load())
	if err == nil {
		p.legacy.Store(!s.modern)
		return s, nil
	}
	err = s.explain(p.late(ctx, err))
	p.legacy.Store(false) // the server may have been replaced
	old := p.tryOlder(s)
	killed := s.process != nil && !legacy && s.line.protocol() == "" && errors.Is(err, errConnection)
	s.Stop(ctx)
	if (old || killed) && ctx.Err() == nil {
		return p.connect(ctx, true)
	}
	return nil, err
}

// tryOlder reports whether the failed handshake of s is reason to speak HTTP with SSE from now on: the POST was refused in
// a way that only a server without streamable HTTP does (MCP 2025-11-25, "Backwards Compatibility").
func (p *Provider) tryOlder(s *session) bool {
	h, ok := s.line.carrier.(*streamable)
	if !ok {
		p.sse.Store(false) // the server may have been replaced
		return false
	}
	switch h.status.Load() {
	case 400, 404, 405, 406, 415:
		p.sse.Store(true)
		return true
	default:
		return false
	}
}

// errConnection marks an error as a broken connection.
var errConnection = errors.New("the connection broke")

// open starts the process, or prepares the connection to the server's URL.
func (s *session) open(ctx context.Context) error {
	o := s.p.opts
	if o.URL == "" {
		return s.spawn()
	}
	client, err := httpClient(o)
	if err != nil {
		return err
	}
	if s.p.sse.Load() {
		c, err := newSSE(ctx, s.line, o, client)
		if err != nil {
			s.p.sse.Store(false)
			client.CloseIdleConnections()
			return err
		}
		s.line.carrier = c
		return nil
	}
	s.line.carrier = newStreamable(s.line, o, client, s.suspect)
	return nil
}

// shakeHands lets the SDK negotiate the protocol.
func (s *session) shakeHands(ctx context.Context, legacy bool) error {
	var o *mcp.ClientSessionOptions
	if legacy {
		o = &mcp.ClientSessionOptions{ProtocolVersion: lastInitialize}
	}
	// Roots are not among them. Before 2026-07-28 they are the session's: a server asks once, is told to keep them (MCP
	// 2025-11-25, roots), and may take them in the place of the folders that the operator gave it. The session is one for the
	// clients of all agents, of which the first would set the folders of the others. Later servers ask in each call.
	capabilities := &mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
	}
	who := &mcp.Implementation{Name: "hermesd", Version: s.p.opts.Version}
	options := &mcp.ClientOptions{Capabilities: capabilities}
	s.subscribeTo(options)
	client := mcp.NewClient(who, options)
	sdk, err := client.Connect(ctx, transport{s.line}, o)
	if err != nil {
		// The SDK closes the line when a handshake fails, so its end need not be the reason.
		if cause := s.line.err(); ctx.Err() == nil && cause != nil && !errors.Is(cause, errStopped) {
			return fmt.Errorf("%w: %w", errConnection, cause)
		}
		return fmt.Errorf("handshake: %w", err)
	}
	// The SDK holds a goroutine for list changes (2026-07-28) until it is closed; the line's end is all that closing reports.
	closeSDK := func() { sdk.Close() } //nolint:errcheck
	if !s.line.goWork(func() { <-s.line.done(); closeSDK() }) {
		closeSDK()
	}
	init := sdk.InitializeResult()
	s.sdk, s.has = sdk, init.Capabilities
	if s.has == nil {
		s.has = &mcp.ServerCapabilities{}
	}
	if s.modern = init.ProtocolVersion > lastInitialize; s.modern {
		meta, err := newRequestMeta(init.ProtocolVersion, who)
		if err != nil {
			return err
		}
		s.line.carry(meta) // before anybody may send a request of this protocol
	}
	s.line.negotiated(init.ProtocolVersion)
	if !s.modern && s.has.Logging != nil {
		s.wantLogs(ctx)
	}
	return nil
}

// wantLogs asks the server for log lines from info up, which calls pass on. It need not agree.
func (s *session) wantLogs(ctx context.Context) {
	s.logs = make(chan struct{})
	s.line.goWork(func() {
		defer close(s.logs)
		_, err := s.line.roundTrip(ctx, &request{method: "logging/setLevel", params: func(b *bytes.Buffer) error {
			b.WriteString(`"level":"info"`)
			return nil
		}})
		if err != nil {
			s.p.log.Debug("the server did not take the log level", "error", err)
		}
	})
}

// awaitLogs lets the server take the log level before the first call, if it does not take long over it.
func (s *session) awaitLogs(ctx context.Context) {
	if s.logs == nil {
		return
	}
	timer := time.NewTimer(logsPatience)
	defer timer.Stop()
	select {
	case <-s.logs:
	case <-timer.C:
	case <-ctx.Done():
	case <-s.line.done():
	}
}

// noteChange has a list read again, beside the reading of what else the server sends.
func (s *session) noteChange(list string) {
	later := s.restocked
	if list == "tools" {
		later = s.changed
	}
	select {
	case later <- struct{}{}:
	default:
	}
}

// relist reads lists again after each change, at most every relistPause.
func (s *session) relist(changed <-chan struct{}, read func(ctx context.Context) error) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for wait := time.Duration(0); ; wait = relistPause {
		select {
		case <-changed:
		case <-s.line.done():
			return
		}
		pause.Reset(wait)
		select {
		case <-pause.C:
		case <-s.line.done():
			return
		}
		select { // what came meanwhile is covered by this reading
		case <-changed:
		default:
		}
		ctx, cancel := context.WithTimeout(s.line.ctx, s.p.opts.ConnectTimeout)
		err := read(ctx)
		cancel()
		if err != nil && s.line.ctx.Err() == nil {
			s.p.log.Warn("a list of the server that changed could not be read; the former one stays", "error", err)
		}
	}
}

func (s *session) relistTools(ctx context.Context) error {
	tools, err := s.listTools(ctx)
	if err == nil {
		s.p.publish(tools)
	}
	return err
}

// relistShelf reads what the server has besides tools. That is done beside the start: tools never wait for it.
func (s *session) relistShelf(ctx context.Context) error {
	found, err := s.takeStock(ctx)
	if err == nil {
		s.p.publishShelf(found)
	}
	return err
}

// suspect asks a server over HTTP, after an exchange broke, whether it still lives; only silence ends the session.
func (s *session) suspect(cause error) {
	if s.line.protocol() == "" || !s.line.probing.CompareAndSwap(false, true) {
		return // a handshake that breaks says so itself
	}
	if !s.line.goWork(func() {
		defer s.line.probing.Store(false)
		ctx, cancel := context.WithTimeout(s.line.ctx, s.p.opts.ConnectTimeout)
		defer cancel()
		if err := s.line.alive(ctx); err != nil {
			s.line.fail(cause)
		}
	}) {
		s.line.probing.Store(false)
	}
}

// bury waits for the end of the line and takes down everything that belongs to it.
func (s *session) bury() {
	if s.process != nil {
		select {
		case <-s.line.done():
			if !errors.Is(s.line.err(), errStopped) {
				s.awaitExit()
			}
		case <-s.process.Done():
			// What it wrote last is still in the pipe, which ends now.
			select {
			case <-s.line.done():
			case <-time.After(exitPatience):
				s.line.fail(errors.New("the process ended"))
			}
		}
		s.process.Stop(s.p.opts.StopGrace)
	} else {
		<-s.line.done()
	}
	s.line.close()
	s.loops.Wait()
	close(s.gone)
}

// Done implements [supervisor.Instance].
func (s *session) Done() <-chan struct{} { return s.gone }

// Err implements [supervisor.Instance].
func (s *session) Err() error { return s.explain(s.line.err()) }

// Stop implements [supervisor.Instance].
func (s *session) Stop(ctx context.Context) {
	s.line.fail(errStopped)
	select {
	case <-s.gone:
	case <-ctx.Done():
		if s.process != nil {
			s.process.Stop(0)
		}
		<-s.gone
	}
}

// PID is the process of a server over stdio, else 0.
func (s *session) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}
