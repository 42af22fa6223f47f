package join

import (
	"bytes"
	"encoding/json"

	"github.com/hermesd/hermesd/internal/rawjson"
)

// From MCP 2026-07-28 a client hears of changes through a request that lasts. It is carried from one daemon to the next
// instead of being answered: many clients listen once.
const (
	methodListen       = "subscriptions/listen"
	methodAcknowledged = "notifications/subscriptions/acknowledged"
	keySubscription    = "io.modelcontextprotocol/subscriptionId"
)

// wanted is what a client listens for.
type wanted struct {
	ToolsListChanged, PromptsListChanged, ResourcesListChanged bool
	ResourceSubscriptions                                      []string
}

func wantedBy(params json.RawMessage) wanted {
	var p struct{ Notifications wanted }
	if json.Unmarshal(params, &p) != nil {
		return wanted{}
	}
	return p.Notifications
}

// lasts reports whether a request is answered only when it ends: one that listens for something.
func (r *request) lasts() bool {
	if r.method != methodListen {
		return false
	}
	w := wantedBy(r.params)
	return w.ToolsListChanged || w.PromptsListChanged || w.ResourcesListChanged || len(w.ResourceSubscriptions) > 0
}

// listenAgain sends what lasts to a new daemon. Its news are what may have changed in between. The front's mutex is held.
func (f *front) listenAgain(l *link) error {
	l.listening = map[string]bool{}
	for id, r := range f.pending {
		m := &message{method: r.method, params: r.params}
		if _, err := l.Write(append(m.withID(r.id), '\n')); err != nil {
			return err
		}
		l.listening[id] = true
		w := wantedBy(r.params)
		for _, list := range []struct {
			name   string
			wanted bool
		}{{"tools", w.ToolsListChanged}, {"resources", w.ResourcesListChanged}, {"prompts", w.PromptsListChanged}} {
			if list.wanted {
				l.news = append(l.news, listChanged(list.name, r.id))
			}
		}
		for _, uri := range w.ResourceSubscriptions {
			l.news = append(l.news, updated(uri, r.id))
		}
	}
	return nil
}

// subscriptionOf is the id of the request that a notification belongs to.
func subscriptionOf(params json.RawMessage) (id json.RawMessage) {
	rawjson.Members(params, func(key string, meta json.RawMessage) {
		if key != "_meta" {
			return
		}
		rawjson.Members(meta, func(key string, value json.RawMessage) {
			if key == keySubscription {
				id = value
			}
		})
	})
	return id
}

// listChanged and updated are notifications, of a subscription if that is not nil.
func listChanged(list string, subscription json.RawMessage) []byte {
	return notification("notifications/"+list+"/list_changed", "", subscription)
}

func updated(uri string, subscription json.RawMessage) []byte {
	return notification("notifications/resources/updated", uri, subscription)
}

func notification(method, uri string, subscription json.RawMessage) []byte {
	var params [][]byte
	if uri != "" {
		params = append(params, append([]byte(`"uri":`), quote(uri)...))
	}
	if subscription != nil {
		params = append(params, append(append([]byte(`"_meta":{"`+keySubscription+`":`), subscription...), '}'))
	}
	b := []byte(`{"jsonrpc":"2.0","method":"` + method + `"`)
	if len(params) > 0 {
		b = append(append(append(b, `,"params":{`...), bytes.Join(params, []byte(","))...), '}')
	}
	return append(b, '}')
}
