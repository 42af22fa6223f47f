package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// sseCarrier carries messages over the HTTP with SSE of MCP 2024-11-05, for servers that have only that: one GET stream
// brings everything from the server, whose first event names where messages are posted to.
type sseCarrier struct {
	line     *line
	opts     *Options
	client   *http.Client
	cancel   context.CancelFunc
	loops    sync.WaitGroup
	base     *url.URL
	endpoint chan string // holds one
	post     string
}

// newSSE opens the stream and waits for its endpoint event, within ctx.
func newSSE(ctx context.Context, l *line, o *Options, client *http.Client) (*sseCarrier, error) {
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	s := &sseCarrier{line: l, opts: o, client: client, cancel: cancel, base: base, endpoint: make(chan string, 1)}
	stop := context.AfterFunc(ctx, cancel) // until the endpoint is known, ctx bounds the stream
	resp, err := s.do(life, http.MethodGet, o.URL, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		discard(resp)
		cancel()
		return nil, newStatusError(s.opts, resp, "")
	}
	s.loops.Go(func() { s.read(resp) })
	select {
	case s.post = <-s.endpoint:
	case <-l.done():
		err = l.err()
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the endpoint event: %w", ctx.Err())
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err == nil {
		s.post, err = s.resolve(s.post)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// resolve makes the endpoint's address, which must be on the configured host: the headers go there.
func (s *sseCarrier) resolve(endpoint string) (string, error) {
	u, err := s.base.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("the server's endpoint event: %w", err)
	}
	if !sameOrigin(u, s.base) {
		return "", fmt.Errorf("the server's endpoint event names another host, %s; set url to that server if it is meant", u.Host)
	}
	return u.String(), nil
}

func (s *sseCarrier) established(string) {}

func (s *sseCarrier) close() {
	s.cancel()
	s.loops.Wait()
	s.client.CloseIdleConnections()
}

func (s *sseCarrier) read(resp *http.Response) {
	defer resp.Body.Close() //nolint:errcheck // read to its end
	err := readEvents(resp.Body, s.opts.MaxMessageBytes, func(e *event) bool {
		switch e.name {
		case "endpoint":
			select {
			case s.endpoint <- string(e.data):
			default:
			}
		case "", "message":
			s.line.receive(e.data, nil)
		}
		return true
	})
	var large *tooLargeError
	switch {
	case err == nil:
		err = errors.New("the server ended the stream")
	case errors.As(err, &large) && s.line.underWay() > 1:
		err = fmt.Errorf("the stream, which all calls share, had to be given up: %v", large) // whose answer it was cannot be told
	}
	s.line.fail(err)
}

func (s *sseCarrier) send(ctx context.Context, f *frame) (sent bool, err error) {
	ctx, wrote := watchWrite(ctx, f)
	resp, err := s.do(ctx, http.MethodPost, s.post, f.data)
	if err != nil {
		return wrote.Load(), err
	}
	defer discard(resp)
	if resp.StatusCode == http.StatusNotFound {
		s.line.retire(errSessionGone)
		return false, errSessionGone
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		err := newStatusError(s.opts, resp, "")
		return !err.refused(), err
	}
	return true, nil
}

func (s *sseCarrier) do(ctx context.Context, method, address string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range s.opts.Headers {
		req.Header.Set(name, value)
	}
	s.opts.via(req.Header)
	req.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	return s.client.Do(req)
}
