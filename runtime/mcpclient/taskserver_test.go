package mcpclient_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// taskServer is an MCP server of 2026-07-28 that answers every call with a task, and says about it what the call's
// arguments tell it to.
type taskServer struct {
	mu      sync.Mutex
	made    int
	tasks   map[string]*taskScript
	told    []string        // what it was told about tasks, in order
	caps    json.RawMessage // the client's, in the last call
	changed chan struct{}   // has something after each telling
}

// taskScript is the arguments of a call: members of the task that answers it, and of the answers to tasks/get, of which the
// last one stays. "ERROR" and what follows is a JSON-RPC error instead, "HANG" no answer, "DIE" the end of the server; ID
// in them is the task's.
type taskScript struct {
	Create  string   `json:"create"`
	Gets    []string `json:"gets"`
	Updates []string `json:"updates"` // the same of tasks/update, an acknowledgement if there are none; after them comes the last of Gets
}

func newTaskServer() *taskServer {
	return &taskServer{tasks: map[string]*taskScript{}, changed: make(chan struct{}, 1)}
}

const taskTools = `{"tools":[{"name":"job","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"echo","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`

// answer is the answer to a message, as members of it; "" for none.
func (s *taskServer) answer(m *rpc) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		ID        string          `json:"taskId"`
		Inputs    json.RawMessage `json:"inputResponses"`
		Meta      struct {
			Caps json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
	if m.Params != nil && json.Unmarshal(m.Params, &p) != nil {
		panic(string(m.Params))
	}
	script := s.tasks[p.ID]
	switch m.Method {
	case "server/discover":
		return `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
	case "tools/list":
		return `"result":` + taskTools
	case "tools/call":
		s.caps = p.Meta.Caps
		if p.Name == "echo" {
			return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}],"resultType":"complete"}`, p.Arguments)
		}
		script = &taskScript{}
		if json.Unmarshal(p.Arguments, script) != nil {
			panic(string(p.Arguments))
		}
		s.made++
		id := fmt.Sprintf("task-%d", s.made)
		s.tasks[id] = script
		if script.Create == "" {
			script.Create = `"status":"working","pollIntervalMs":1`
		}
		return say(id, script.Create, "task")
	case "tasks/get":
		if script == nil {
			return `"error":{"code":-32602,"message":"no such task"}`
		}
		next := script.Gets[0]
		if len(script.Gets) > 1 {
			script.Gets = script.Gets[1:]
		}
		if !strings.Contains(next, "pollIntervalMs") {
			next = strings.Replace(next, `"status"`, `"pollIntervalMs":1,"status"`, 1)
		}
		return say(p.ID, next, "complete")
	case "tasks/update", "tasks/cancel":
		s.told = append(s.told, strings.TrimSpace(m.Method+" "+string(p.Inputs)))
		select {
		case s.changed <- struct{}{}:
		default:
		}
		if script != nil && m.Method == "tasks/update" && len(script.Updates) > 0 {
			next := script.Updates[0]
			if script.Updates = script.Updates[1:]; len(script.Updates) == 0 {
				script.Gets = script.Gets[len(script.Gets)-1:]
			}
			return say(p.ID, next, "complete")
		}
		return `"result":{"resultType":"complete"}`
	default:
		return `"error":{"code":-32601,"message":"unknown method"}`
	}
}

func say(id, members, kind string) string {
	members = strings.ReplaceAll(members, "ID", id)
	switch {
	case members == "HANG":
		return ""
	case members == "DIE":
		os.Exit(9)
	case strings.HasPrefix(members, "ERROR"):
		return `"error":` + strings.TrimPrefix(members, "ERROR")
	case !strings.HasPrefix(members, `"taskId"`):
		members = fmt.Sprintf(`"taskId":%q,%s`, id, members)
	}
	return fmt.Sprintf(`"result":{"resultType":%q,"createdAt":"2026-11-30T10:00:00Z","lastUpdatedAt":"2026-11-30T10:00:00Z",%s}`, kind, members)
}

func (s *taskServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m rpc
	if err != nil || json.Unmarshal(body, &m) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	var p struct {
		ID   string `json:"taskId"`
		Name string `json:"name"`
	}
	if m.Params != nil && json.Unmarshal(m.Params, &p) != nil {
		panic(string(m.Params))
	}
	if name := r.Header.Get("Mcp-Name"); name != p.ID+p.Name || r.Header.Get("Mcp-Method") != m.Method {
		http.Error(w, "the headers do not fit", http.StatusBadRequest)
		return
	}
	answer := s.answer(&m)
	if answer == "" {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
}

// hears waits until the server was told something that begins as wanted.
func (s *taskServer) hears(r *running, want string) string {
	r.t.Helper()
	ctx, cancel := within(r.t.Context(), patience)
	defer cancel()
	for {
		s.mu.Lock()
		for _, line := range s.told {
			if strings.HasPrefix(line, want) {
				s.mu.Unlock()
				return line
			}
		}
		s.mu.Unlock()
		select {
		case <-s.changed:
		case <-ctx.Done():
			r.t.Fatalf("the server was not told %s", want)
		}
	}
}

// tellings is how often the server was told something.
func (s *taskServer) tellings(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.told {
		if strings.HasPrefix(line, method) {
			n++
		}
	}
	return n
}

// runTaskServer is the same over standard streams.
func runTaskServer() {
	s, in := newTaskServer(), bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if answer := s.answer(&m); answer != "" {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", m.ID, answer)
		}
	}
}
