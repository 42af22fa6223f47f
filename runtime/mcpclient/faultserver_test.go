package mcpclient_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// faultServer is an MCP server over standard streams, written by hand so that it can misbehave. Its tools are its faults;
// environment variables choose faults of its start.
//
//	FAULT_AT    "discover", "initialize" or "list": where FAULT happens
//	FAULT       "hang", "die", "garbage" or "silent" (the request is dropped)
//	STARTS      a file to which each start appends a line
//	TOOLS       the tools array to list, instead of its own, or @ and a file that holds it
//	PAGES       "loop" repeats one cursor for ever, "many" never ends, "two" splits the list
//	NO_TOOLS    any text: tools/list is an unknown method
type faultServer struct {
	in *bufio.Reader

	mu      sync.Mutex
	out     *bufio.Writer
	renamed bool
	opened  bool
	deaf    bool
	waiting map[string]chan json.RawMessage // answers to our own requests
	late    map[string]bool                 // calls answered when they are cancelled
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func runFaultServer() {
	if file := os.Getenv("STARTS"); file != "" {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
	s := &faultServer{
		in: bufio.NewReaderSize(os.Stdin, 1<<20), out: bufio.NewWriterSize(os.Stdout, 1<<20),
		waiting: map[string]chan json.RawMessage{}, late: map[string]bool{},
	}
	fmt.Fprintln(os.Stderr, "fault server is up")
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		deaf := s.deaf
		s.mu.Unlock()
		if deaf {
			select {}
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.handle(&m)
	}
}

func (s *faultServer) write(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.out.Flush()
}

func (s *faultServer) result(id json.RawMessage, result string) {
	s.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (s *faultServer) text(id json.RawMessage, text string) {
	s.result(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

func (s *faultServer) fault(step string) bool {
	if os.Getenv("FAULT_AT") != step {
		return false
	}
	switch os.Getenv("FAULT") {
	case "hang":
		select {}
	case "die":
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(3)
	case "garbage":
		s.write("Server listening on port 3000!\n{\"jsonrpc\":\n[1,2]\n\"text\"")
		return false
	}
	return true
}

func (s *faultServer) handle(m *rpc) {
	switch m.Method {
	case "server/discover":
		if s.fault("discover") {
			return
		}
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
	case "initialize":
		if s.fault("initialize") {
			return
		}
		s.result(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"fault","version":"1"}}`)
	case "ping", "logging/setLevel":
		s.result(m.ID, `{}`)
	case "tools/list":
		if !s.fault("list") {
			s.list(m)
		}
	case "tools/call":
		go s.call(m)
	case "notifications/cancelled":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		json.Unmarshal(m.Params, &p)
		s.mu.Lock()
		late := s.late[string(p.RequestID)]
		s.mu.Unlock()
		if late {
			s.text(p.RequestID, "too late")
			fmt.Fprintln(os.Stderr, "cancelled")
		}
	case "":
		s.mu.Lock()
		ch := s.waiting[string(m.ID)]
		s.mu.Unlock()
		if ch != nil {
			answer := m.Result
			if m.Error != nil {
				answer = m.Error
			}
			ch <- answer
		}
	}
}

func (s *faultServer) list(m *rpc) {
	if os.Getenv("NO_TOOLS") != "" {
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
		return
	}
	tools := os.Getenv("TOOLS")
	if file, ok := strings.CutPrefix(tools, "@"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		tools = string(text)
	}
	if tools == "" {
		var all []string
		for _, name := range strings.Fields("echo hang die late garbage flood pester pesterdeaf big huge toolerror rpcerror raw ask sample roots progress block stop page complete") {
			all = append(all, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		s.mu.Lock()
		changing := "before"
		if s.renamed {
			changing = "after"
		}
		s.mu.Unlock()
		all = append(all, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, changing))
		tools = "[" + strings.Join(all, ",") + "]"
	}
	switch os.Getenv("PAGES") {
	case "loop":
		s.result(m.ID, `{"tools":[],"nextCursor":"again"}`)
	case "many":
		s.result(m.ID, fmt.Sprintf(`{"tools":[],"nextCursor":"%s"}`, m.ID))
	case "two":
		if strings.Contains(string(m.Params), `"cursor":"second"`) {
			s.result(m.ID, `{"tools":[{"name":"second","inputSchema":{"type":"object"}}]}`)
			return
		}
		s.result(m.ID, `{"tools":[{"name":"first","inputSchema":{"type":"object"}}],"nextCursor":"second"}`)
	default:
		s.result(m.ID, `{"tools":`+tools+`}`)
	}
}

// ask sends a request of the server's own and waits for the answer.
func (s *faultServer) ask(id, method string, params json.RawMessage) json.RawMessage {
	ch := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.waiting[id] = ch
	s.mu.Unlock()
	s.write(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	return <-ch
}

func (s *faultServer) call(m *rpc) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		panic(err)
	}
	switch p.Name {
	case "echo":
		s.result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":%s}`, p.Arguments, p.Arguments))
	case "hang":
	case "late":
		s.mu.Lock()
		s.late[string(m.ID)] = true
		s.mu.Unlock()
	case "die":
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(7)
	case "garbage":
		s.write("DEBUG: about to answer\n\x00\xff{]")
		s.text(m.ID, "done")
	case "flood":
		for i := range 20_000 {
			s.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"line %d"}}`, i)
			s.write("garbage %d", i)
			fmt.Fprintln(os.Stderr, "flood", i)
		}
		s.text(m.ID, "done")
	case "pester", "pesterdeaf": // with requests, the latter without reading an answer
		s.mu.Lock()
		s.deaf = p.Name == "pesterdeaf"
		s.mu.Unlock()
		for i := range 50_000 {
			s.write(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i)
			s.write(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"?"}}`, i)
			s.write(`{"jsonrpc":"2.0","id":"n%d","method":"novelty"}`, i)
			s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.text(m.ID, "done")
	case "big":
		s.text(m.ID, strings.Repeat("x", 2<<20))
	case "huge":
		s.mu.Lock()
		fmt.Fprintf(s.out, `{"result":{"content":[{"type":"text","text":"`)
		io.CopyN(s.out, endless{}, 3<<20)
		fmt.Fprintf(s.out, "\"}]},\"jsonrpc\":\"2.0\",\"id\":%s}\n", m.ID)
		s.out.Flush()
		s.mu.Unlock()
	case "toolerror":
		s.result(m.ID, `{"content":[{"type":"text","text":"no such city"}],"isError":true}`)
	case "rpcerror":
		s.write(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, p.Arguments)
	case "raw":
		var a struct {
			Result string `json:"result"`
		}
		json.Unmarshal(p.Arguments, &a)
		s.result(m.ID, a.Result)
	case "ask":
		s.text(m.ID, string(s.ask(`"q1"`, "elicitation/create", p.Arguments)))
	case "sample":
		s.text(m.ID, string(s.ask(`"q2"`, "sampling/createMessage", p.Arguments)))
	case "roots":
		s.text(m.ID, string(s.ask(`"q3"`, "roots/list", p.Arguments)))
	case "progress":
		for i := range 3 {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":3,"message":"step %d"}}`, p.Meta.Token, i+1, i+1)
			s.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"fault","data":{"step":%d}}}`, i+1)
		}
		s.text(m.ID, "done")
	case "before", "after":
		s.mu.Lock()
		s.renamed = !s.renamed
		s.mu.Unlock()
		s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.text(m.ID, "changed")
	case "page": // wants a page opened first, once
		s.mu.Lock()
		opened := s.opened
		s.mu.Unlock()
		if !opened {
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"open a page","data":{"elicitations":[{"mode":"url","message":"Sign in","url":"https://example.org/","elicitationId":"p1"}]}}}`, m.ID)
			return
		}
		s.text(m.ID, "welcome")
	case "complete":
		s.mu.Lock()
		s.opened = true
		s.mu.Unlock()
		s.write(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"p1"}}`)
		s.text(m.ID, "thanks")
	case "block": // until the caller gives up
		time.Sleep(time.Minute)
	case "stop": // reading anything
		s.mu.Lock()
		select {}
	default:
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}`, m.ID)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
