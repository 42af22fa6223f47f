package mcpclient

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"
)

// errNoStream is a success without the stream that was asked for.
var errNoStream = errors.New("the server answered without an event stream")

// answers takes in the event stream that answers a request. A stream that breaks before the answer is resumed where the
// server numbers its events (MCP 2025-11-25, "Resumability and Redelivery").
func (s *streamable) answers(ctx context.Context, resp *http.Response, f *frame) error {
	last, idle := "", 0
	for {
		next, wait, answered, err := s.events(resp, f.call)
		resp.Body.Close() //nolint:errcheck // it has ended
		if answered {
			return nil
		}
		if err == nil {
			err = errors.New("the server ended the stream without an answer")
		}
		var large *tooLargeError
		if ctx.Err() != nil || errors.As(err, &large) {
			return err
		}
		if next != "" && next != last {
			last, idle = next, 0
		} else if idle++; last == "" || idle > maxResumes {
			return err
		}
		if resp, err = s.resume(ctx, last, max(wait, resumeMin*time.Duration(min(idle, 1)))); err != nil {
			return err
		}
	}
}

// events takes in one stream until it ends or, for a call's stream, has brought its answer.
func (s *streamable) events(resp *http.Response, origin *call) (last string, wait time.Duration, answered bool, err error) {
	err = readEvents(resp.Body, s.opts.MaxMessageBytes, func(e *event) bool {
		if e.id != "" {
			last = e.id
		}
		if e.retry > 0 {
			wait = min(e.retry, resumeMax)
		}
		if len(e.data) > 0 && (e.name == "" || e.name == "message") {
			answered = s.line.receive(e.data, origin)
		}
		return !answered
	})
	return last, wait, answered, err
}

// resume opens a GET stream, from behind an event if last is not "".
func (s *streamable) resume(ctx context.Context, last string, wait time.Duration) (*http.Response, error) {
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	resp, err := s.do(ctx, http.MethodGet, nil, last)
	if err != nil {
		return nil, err
	}
	if _, err := s.check(resp, nil); err != nil {
		discard(resp)
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body.Close() //nolint:errcheck // it is of no use
		return nil, errNoStream
	}
	return resp, nil
}

// listen keeps the GET stream open, which brings list changes and the like. A server need not have one. Events that come
// while it is closed are lost, apart from list changes: the list is read again after each break.
func (s *streamable) listen() {
	last, wait := "", time.Duration(0)
	for again := false; ; again = true {
		resp, err := s.resume(s.ctx, last, wait)
		var status *statusError
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				discard(resp)
			}
			return
		case errors.Is(err, errSessionGone):
			if last == "" && wait == 0 { // some servers answer 404 to every GET
				return
			}
			s.line.retire(err)
			return
		case errors.Is(err, errNoStream) || errors.As(err, &status) && status.status < 500:
			return
		case err != nil:
			s.suspect(err)
			wait = min(max(2*wait, resumeMin), resumeMax)
			continue
		}
		if again {
			s.line.missed()
		}
		opened := time.Now()
		next, asked, _, err := s.events(resp, nil)
		resp.Body.Close() //nolint:errcheck // it has ended
		if s.ctx.Err() != nil {
			return
		}
		if err != nil {
			s.line.logger.Debug("the stream of notifications broke", "error", err)
			s.suspect(err)
		}
		if next != "" {
			last = next
		}
		switch {
		case asked > 0:
			wait = asked
		case time.Since(opened) > resumeMax:
			wait = resumeMin
		default:
			wait = min(max(2*wait, resumeMin), resumeMax)
		}
	}
}

// subscribe keeps the stream of a subscription open (2026-07-28): when it breaks or ends, the same request is made again, and
// lists that may have changed meanwhile are read again. Whoever waits for the subscription's end hears of it only when the
// server refuses.
func (s *streamable) subscribe(ctx context.Context, f *frame) {
	wait, idle := resumeMin/2, 0
	for {
		opened := time.Now()
		sent, err := s.post(ctx, f)
		lived := time.Since(opened)
		if idle++; lived >= resumeMin {
			idle = 0
		}
		var status *statusError
		switch {
		case err == nil && idle > maxResumes: // it is answered at once each time: refused, or of no use
			return
		case ctx.Err() != nil || s.ctx.Err() != nil || errors.Is(err, errSessionGone) || errors.As(err, &status) && status.status < 500:
			if err != nil {
				s.failed(ctx, f, sent, err)
			}
			return
		case err != nil:
			s.line.logger.Debug("the stream of a subscription broke", "error", err)
			s.suspect(err)
		}
		if wait = min(2*wait, resumeMax); lived > resumeMax {
			wait = resumeMin
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		timer.Stop()
		f.again = true
	}
}
