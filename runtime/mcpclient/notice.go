package mcpclient

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/tool"
)

// progress passes a step to the call that its token names.
func (l *line) progress(params json.RawMessage) {
	var token json.RawMessage
	var p tool.Progress
	rawjson.Members(params, func(key string, value json.RawMessage) {
		switch key {
		case "progressToken":
			token = value
		case "progress":
			p.Done = number(value)
		case "total":
			p.Total = number(value)
		case "message":
			p.Note, _ = rawjson.String(value)
		}
	})
	id, err := strconv.ParseInt(string(token), 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	c := l.calls[id]
	l.mu.Unlock()
	if c != nil && c.events != nil {
		c.tell(func() { c.host.Progress(p) })
	}
}

func number(raw json.RawMessage) float64 {
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0
	}
	return f
}

// logMessage passes a log line to the call that it belongs to, else to the daemon's own log.
func (l *line) logMessage(params json.RawMessage, origin *call) {
	var r tool.LogRecord
	rawjson.Members(params, func(key string, value json.RawMessage) {
		switch key {
		case "level":
			r.Level, _ = rawjson.String(value)
		case "logger":
			r.Logger, _ = rawjson.String(value)
		case "data":
			r.Data = value
		}
	})
	c, err := l.belongsTo(origin)
	if err != nil || c.events == nil {
		l.said.Event(r.Level, r.Logger, r.Data)
		return
	}
	l.said.CallEvent(c.of.ID, r.Level, r.Logger, r.Data)
	c.tell(func() { c.host.Log(r) })
}

var (
	errNoCall    = errors.New("no call of a tool is running, so there is nobody to ask")
	errManyCalls = errors.New("several callers' calls are running and this transport does not say which one this belongs to; send it on the call's own stream, or run one call at a time")
)

// belongsTo finds the tool call that a log line or a question of the server is about. Streamable HTTP says so, by the stream
// that it comes on. Elsewhere a message carries no such sign: it belongs to the one call that is running or, if several
// are, to the latest one when they all come from one session of one agent, so that nothing ever reaches a stranger.
func (l *line) belongsTo(origin *call) (*call, error) {
	if origin != nil && origin.of != nil {
		return origin, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var latest *call
	for _, c := range l.calls {
		switch {
		case c.of == nil:
		case latest == nil:
			latest = c
		case c.of.Agent != latest.of.Agent || c.of.Session != latest.of.Session:
			return nil, errManyCalls
		case c.id > latest.id:
			latest = c
		}
	}
	if latest == nil {
		return nil, errNoCall
	}
	return latest, nil
}
