package join

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

const (
	methodCall        = "tools/call"
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodCancelled   = "notifications/cancelled"
	methodSetLevel    = "logging/setLevel"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
)

// idPrefix begins the ids of what is said in the client's place. What answers them is not the client's.
const idPrefix = `"hermesd-rejoin-`

func ours(id json.RawMessage) bool { return bytes.HasPrefix(id, []byte(idPrefix)) }

// maxSubscriptions bounds the subscriptions that are renewed at another daemon.
const maxSubscriptions = 1000

// session is what a client of the session protocol (up to MCP 2025-11-25) has told its daemon, and has to tell the next. A
// client of 2026-07-28 says everything with each request, and leaves it empty.
type session struct {
	initialize  json.RawMessage // the params that a daemon accepted; nil: no session
	version     string          // the protocol version that it answered
	initialized bool
	level       json.RawMessage
	subscribed  map[string]json.RawMessage // by uri
}

// remembered reports whether a session goes on with what a request of this method said.
func remembered(method string) bool {
	switch method {
	case methodInitialize, methodSetLevel, methodSubscribe, methodUnsubscribe, methodListen:
		return true
	}
	return false
}

// answered hears that a daemon took what a request said.
func (s *session) answered(r *request, m *message) {
	if m.result == nil || r.params == nil {
		return
	}
	switch r.method {
	case methodInitialize:
		*s = session{initialize: r.params, version: readOpened(m.result).ProtocolVersion}
	case methodSetLevel:
		s.level = r.params
	case methodSubscribe:
		if s.subscribed == nil {
			s.subscribed = map[string]json.RawMessage{}
		}
		if len(s.subscribed) < maxSubscriptions {
			s.subscribed[uriOf(r.params)] = r.params
		}
	case methodUnsubscribe:
		delete(s.subscribed, uriOf(r.params))
	}
}

func uriOf(params json.RawMessage) string {
	var p struct{ URI string }
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.URI
}

// opened is a daemon's answer to initialize.
type opened struct {
	ProtocolVersion string
	Capabilities    map[string]json.RawMessage
}

func readOpened(result json.RawMessage) (o opened) {
	if json.Unmarshal(result, &o) != nil {
		return opened{}
	}
	return o
}

// resume opens the client's session at another daemon. It returns the notifications that tell the client what may have
// changed in between.
func (f *front) resume(ctx context.Context, l *link) (news [][]byte, err error) {
	f.mu.Lock()
	s := f.session
	s.subscribed = maps.Clone(s.subscribed)
	f.mu.Unlock()
	if s.initialize == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { f.close(l) })() // which ends what waits for the daemon
	o, err := l.open(&s)
	if err != nil {
		return nil, fmt.Errorf("the session was not opened again: %w", err)
	}
	l.resumed = true
	said := 1
	say := func(method string, params json.RawMessage) error {
		said++
		return l.write(&message{method: method, params: params}, said)
	}
	if s.level != nil {
		if err := say(methodSetLevel, s.level); err != nil {
			return nil, err
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(s.subscribed)) {
		if err := say(methodSubscribe, s.subscribed[uri]); err != nil {
			return nil, err
		}
		news = append(news, updated(uri, nil))
	}
	if !s.initialized {
		return nil, nil
	}
	for _, list := range []string{"tools", "resources", "prompts"} {
		var c struct{ ListChanged bool }
		if raw := o.Capabilities[list]; raw != nil && json.Unmarshal(raw, &c) == nil && c.ListChanged {
			news = append(news, listChanged(list, nil))
		}
	}
	return news, nil
}

// open says the client's initialize.
func (l *link) open(s *session) (opened, error) {
	if err := l.write(&message{method: methodInitialize, params: s.initialize}, 1); err != nil {
		return opened{}, err
	}
	for {
		line, err := l.next()
		if err != nil {
			return opened{}, err
		}
		l.heard = true
		m := parse(line)
		if m.kind != aResponse || !ours(m.id) {
			continue // what a daemon says before its session is open is to nobody
		}
		if m.result == nil {
			return opened{}, fmt.Errorf("the daemon refuses it: %s", m.failed)
		}
		o := readOpened(m.result)
		if o.ProtocolVersion != s.version {
			return opened{}, fmt.Errorf("this daemon speaks MCP %s and the one before it spoke %s; start the client's connection anew", o.ProtocolVersion, s.version)
		}
		return o, nil
	}
}

// write says a request in the client's place.
func (l *link) write(m *message, number int) error {
	_, err := l.Write(append(m.withID(json.RawMessage(idPrefix+strconv.Itoa(number)+`"`)), '\n'))
	return err
}
