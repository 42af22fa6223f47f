package daemon

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// viaLinger is how long a daemon counts as one that takes its tools from here after its last request. One that listens
	// for changes has a request open all the time.
	viaLinger = time.Minute
	// maxVia bounds the ids on the way and the daemons that are remembered.
	maxVia = 64
)

// via ends circles of daemons. Each tells the servers that it connects to who it is, and who takes tools from it: a server
// that finds its own id there would offer its own tools to itself again, under longer names, without end. (It is the rule
// by which HTTP's Via ends loops of proxies.)
type via struct {
	id string

	mu    sync.Mutex
	above map[string]*taker // by id
}

// taker is a daemon that takes its tools from here, at first hand or not.
type taker struct {
	open int // requests and streams
	last time.Time
}

func newVia() *via { return &via{id: rand.Text(), above: map[string]*taker{}} }

// String is what this daemon tells its servers.
func (v *via) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget()
	return strings.Join(append([]string{v.id}, slices.Sorted(maps.Keys(v.above))...), ",")
}

// forget lets go of those that have not been heard of for long, so that they take no room from others.
func (v *via) forget() {
	maps.DeleteFunc(v.above, func(_ string, t *taker) bool { return t.open == 0 && time.Since(t.last) > viaLinger })
}

// enter hears from which daemons a request or a stream comes ("": from none), and refuses what comes from here. leave is
// called when it has ended.
func (v *via) enter(from string) (leave func(), err error) {
	if from == "" {
		return func() {}, nil
	}
	var ids []string
	for id := range strings.SplitSeq(from, ",") {
		if id = strings.TrimSpace(id); id != "" && len(id) <= 64 && len(ids) < maxVia {
			ids = append(ids, id)
		}
	}
	switch slices.Index(ids, v.id) {
	case -1:
	case 0:
		return nil, tool.Errorf(tool.BadRequest, "this MCP server is this daemon itself; remove its mcp_server block, the tools are here already")
	default:
		return nil, tool.Errorf(tool.BadRequest, "this MCP server takes its tools from this daemon, so that a way back would be a circle; remove the mcp_server block on one of the two")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget()
	takers := make([]*taker, 0, len(ids))
	for _, id := range ids {
		t := v.above[id]
		if t == nil {
			if len(v.above) >= maxVia {
				break
			}
			t = &taker{}
			v.above[id] = t
		}
		t.open++
		takers = append(takers, t)
	}
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, t := range takers {
			t.open--
			t.last = time.Now()
		}
	}, nil
}

// handler stands before the MCP endpoint.
func (v *via) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := strings.Join(r.Header.Values(mcpclient.ViaHeader), ",")
		if from == "" {
			next.ServeHTTP(w, r)
			return
		}
		leave, err := v.enter(from)
		if err != nil {
			refuseCircle(w, tool.AsError(err))
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// refuseCircle answers as JSON-RPC, whose message an MCP client shows to its operator.
func refuseCircle(w http.ResponseWriter, e *tool.Error) {
	raw, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": jsonrpc.CodeInvalidRequest, "message": e.Message, "data": e},
	})
	if err != nil {
		frontend.WriteError(w, http.StatusMisdirectedRequest, e)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusMisdirectedRequest)
	w.Write(raw) // a client that does not take its answer has gone
}
