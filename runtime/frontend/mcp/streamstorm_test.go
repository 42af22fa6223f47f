package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Whatever is cancelled, asked, listed and changed meanwhile: what is not cancelled is answered once, under its own id, after
// all that was told of it, and nothing stays behind (TestMain looks for goroutines).
func TestAStormOnAStreamIsAnsweredOnceEach(t *testing.T) {
	calls := 3000
	if n, err := strconv.Atoi(os.Getenv("HERMESD_STORM")); err == nil {
		calls = n
	}
	l := newLibrary("a", "mcp://a/", "file:///x")
	e := serve(t, l, providertest.New("t", answering("t_work", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		for i := range rand.IntN(4) {
			req.Host.Progress(tool.Progress{Done: float64(i)})
			req.Host.Log(tool.LogRecord{Level: "error", Data: json.RawMessage(`"x"`)})
			runtime.Gosched()
		}
		switch rand.IntN(4) {
		case 0:
			if answer, err := req.Host.Ask(ctx, provider.Question{Message: "sure?"}); err == nil && answer.Action != "decline" {
				t.Errorf("it was answered %+v", answer)
			}
		case 1:
			for range rand.IntN(1000) {
				runtime.Gosched()
			}
		}
		return tool.TextResult(string(req.Call.Arguments)), nil
	})))
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- e.server.ServeStream(context.Background(), e.Agent("desk"), theirs) }()

	var mu sync.Mutex
	open := map[string]string{} // by id, and what the answer has to hold
	cancelled := map[string]bool{}
	slots := make(chan struct{}, 64)
	say := func(line string) {
		if _, err := io.WriteString(ours, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	answers := make(chan string, 10_000) // to the daemon's questions
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for d := json.NewDecoder(ours); ; {
			var m struct {
				ID            json.RawMessage
				Method        string
				Result, Error json.RawMessage
				Params        struct{ ProgressToken json.RawMessage }
			}
			if d.Decode(&m) != nil {
				return
			}
			id := string(m.ID)
			mu.Lock()
			switch want, known := open[id]; {
			case m.Method == "elicitation/create":
				answers <- `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"decline"}}`
			case m.Method == "notifications/progress":
				if token := string(m.Params.ProgressToken); open[token] == "" && !cancelled[token] {
					t.Errorf("progress of %s, which is answered", token)
				}
			case m.Method != "":
			case !known:
				t.Errorf("%s is answered, and was not asked, or twice: %s %s", id, m.Result, m.Error)
			default:
				if !bytes.Contains(m.Result, []byte(want)) && !cancelled[id] {
					t.Errorf("%s is answered with %s %s", id, m.Result, m.Error)
				}
				delete(open, id)
				if !cancelled[id] {
					<-slots
				}
			}
			mu.Unlock()
		}
	}()
	go func() {
		for a := range answers {
			io.WriteString(ours, a+"\n") //nolint:errcheck // what was cancelled may be asked until the end
		}
	}()
	ask := func(id, want, rest string) {
		mu.Lock()
		open[id] = want
		mu.Unlock()
		slots <- struct{}{}
		say(`{"jsonrpc":"2.0","id":` + id + `,` + rest + `}`)
	}
	ask("0", "2025-11-25", `"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ids := []string{"%d", `"%d"`, "%d.5", "9007199254%06d", `"aé%d"`}
	for i := 1; i <= calls; i++ {
		id := fmt.Sprintf(ids[i%len(ids)], i)
		args := fmt.Sprintf(`{"n":%d}`, i)
		switch more := [...]string{"", `,"unknown":1`}[rand.IntN(2)]; rand.IntN(10) {
		case 0:
			ask(id, "{}", `"method":"ping"`)
		case 1:
			ask(id, "t_work", `"method":"tools/list"`)
		case 2:
			l.stock("mcp://a/", "file:///x", fmt.Sprint("file:///", i))
			e.server.Refresh()
		default:
			ask(id, `\"n\":`, `"method":"tools/call","params":{"name":"t_work","arguments":`+args+`,"_meta":{"progressToken":`+id+`}`+more+`}`)
			if rand.IntN(5) > 0 {
				continue
			}
			mu.Lock()
			if _, still := open[id]; still {
				cancelled[id] = true
				<-slots
			}
			mu.Unlock()
			say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
	}
	deadline := time.After(20 * time.Second)
	for range cap(slots) {
		select {
		case slots <- struct{}{}:
		case <-deadline:
			mu.Lock()
			t.Fatalf("not answered: %v", open)
		}
	}
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-heard
	close(answers)
}
