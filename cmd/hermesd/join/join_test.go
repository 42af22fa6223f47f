package join_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/cmd/hermesd/join"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
)

// peer is one side of hermesd mcp: the client or a daemon.
type peer struct {
	t   *testing.T
	in  *bufio.Reader
	out *io.PipeWriter
	end func(error) // of a daemon

	deaf func() // a daemon reads no more
}

func (p *peer) says(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.out, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Errorf("say %s: %v", lines, err)
	}
}

func (p *peer) hears(want ...string) {
	p.t.Helper()
	for _, w := range want {
		got, err := p.in.ReadString('\n')
		if got = strings.TrimSuffix(got, "\n"); err != nil || got != w {
			p.t.Fatalf("heard %s (%v)\nwant  %s", got, err, w)
		}
	}
}

// hearsOne hears a line and reports whether all of the texts are in it.
func (p *peer) hearsOne(texts ...string) {
	p.t.Helper()
	got, err := p.in.ReadString('\n')
	for _, text := range texts {
		if err != nil || !strings.Contains(got, text) {
			p.t.Fatalf("heard %s (%v)\nwithout %s", got, err, text)
		}
	}
}

// conn is a stream to a daemon that a test plays.
type conn struct {
	*io.PipeReader
	*io.PipeWriter
}

func (c conn) CloseWrite() error { return c.PipeWriter.Close() }
func (c conn) Close() error      { return errors.Join(c.PipeReader.Close(), c.PipeWriter.Close()) }

// world is where a client meets one daemon after the other.
type world struct {
	t      *testing.T
	client *peer
	conns  chan conn
	begun  time.Time
	dials  []time.Duration // since begun
	ended  chan error
}

var errAway = errors.New("no daemon is listening on /run/admin.sock; start it with `hermesd serve`")

// start joins a client to a first daemon.
func start(t *testing.T) (*world, *peer) {
	t.Helper()
	in, toHermesd := io.Pipe()
	fromHermesd, out := io.Pipe()
	w := &world{
		t: t, client: &peer{t: t, in: bufio.NewReader(fromHermesd), out: toHermesd},
		conns: make(chan conn, 1), begun: time.Now(), ended: make(chan error, 1),
	}
	first := w.daemon()
	go func() {
		w.ended <- join.Run(t.Context(), &join.Options{In: in, Out: out, Dial: w.dial})
		out.Close()
	}()
	t.Cleanup(func() { toHermesd.Close() })
	return w, first
}

func (w *world) dial(context.Context) (join.Conn, error) {
	w.dials = append(w.dials, time.Since(w.begun))
	select {
	case c := <-w.conns:
		return c, nil
	default:
		return nil, errAway
	}
}

// daemon is the next one that is reached.
func (w *world) daemon() *peer {
	fromClient, toDaemon := io.Pipe()
	fromDaemon, toClient := io.Pipe()
	w.conns <- conn{fromDaemon, toDaemon}
	deaf := func() { fromClient.CloseWithError(io.EOF) } // what gRPC's Send says then
	return &peer{t: w.t, in: bufio.NewReader(fromClient), out: toClient, deaf: deaf, end: func(err error) {
		fromClient.CloseWithError(io.ErrClosedPipe)
		toClient.CloseWithError(err)
	}}
}

func (w *world) ends(want error) {
	w.t.Helper()
	if err := <-w.ended; !errors.Is(err, want) {
		w.t.Errorf("it ended with %v, want %v", err, want)
	}
}

var errKilled = errors.Join(admin.ErrBroken, errors.New("connection reset by peer"))

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"}}}`
	opened     = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{}}}}`
	understood = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	again      = `{"jsonrpc":"2.0","id":"hermesd-rejoin-1","method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"}}}`
	changed    = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

// open opens the client's session.
func (w *world) open(daemon *peer) {
	w.t.Helper()
	w.client.says(initialize)
	daemon.hears(initialize)
	daemon.says(`{"jsonrpc":"2.0","id":0,` + opened)
	w.client.hears(`{"jsonrpc":"2.0","id":0,` + opened)
	w.client.says(understood)
	daemon.hears(understood)
}

func TestMessagesPassAsTheyAre(t *testing.T) {
	w, daemon := start(t)
	for _, line := range []string{
		`{"jsonrpc":"2.0", "id": 1, "method":"tools/call","params":{"arguments":{"n":12345678901234567890}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`,
		`no json`,
	} {
		w.client.says(line)
		daemon.hears(line)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/message"}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
	} {
		daemon.says(line)
		w.client.hears(line)
	}
	w.client.says(`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	daemon.hears(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	w.client.says(strings.Repeat(" ", 17<<20)) // it goes nowhere
	w.client.hearsOne(`"id":null`, `-32600`, `16 MiB`)
}

func TestWhatWasInFlightIsAnsweredOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		want []string
	}{
		"a call may have run":             {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`, []string{`"id":7,`, `"code":-32603`, `"code":"outcome_unknown"`, "may or may not have run"}},
		"a number of any size is an id":   {`{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call"}`, []string{`"id":12345678901234567890,`, "outcome_unknown"}},
		"a list can be asked for again":   {`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`, []string{`"id":"a"`, `"code":"shutting_down"`, `"retryable":true`, "hermesd serve"}},
		"a call in a batch is a call too": {`[{"jsonrpc":"2.0","id":8,"method":"tools/call"}]`, []string{`"id":8,`, "outcome_unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, daemon := start(t)
			w.client.says(tt.line)
			daemon.hearsOne("jsonrpc")
			daemon.says(`{"jsonrpc":"2.0","id":3,"method":"elicitation/create"}`)
			w.client.hears(`{"jsonrpc":"2.0","id":3,"method":"elicitation/create"}`)
			if _, err := io.WriteString(daemon.out, `{"jsonrpc":"2.0","id":7,"resu`); err != nil {
				t.Fatal(err)
			}
			daemon.end(errKilled)
			w.client.hearsOne("notifications/cancelled", `"requestId":3`)
			w.client.hearsOne(tt.want...)
			w.client.out.Close()
			w.ends(nil)
			if rest, err := io.ReadAll(w.client.in); err != nil || len(rest) > 0 {
				t.Errorf("it said more: %s %v", rest, err)
			}
		})
	}
}

func TestWhatWasAnsweredOrCancelledIsNotAnsweredAgain(t *testing.T) {
	w, daemon := start(t)
	w.client.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
	daemon.hearsOne(`"id":1`)
	daemon.hearsOne(`"id":2`)
	daemon.says(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.client.hears(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.client.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	daemon.hearsOne("cancelled")
	w.client.out.Close()
	if _, err := daemon.in.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("the daemon hears %v", err)
	}
	daemon.end(errKilled)
	w.ends(admin.ErrBroken)
	if rest, err := io.ReadAll(w.client.in); err != nil || len(rest) > 0 {
		t.Errorf("it said more: %s %v", rest, err)
	}
}

func TestWhileTheDaemonIsAwayEveryRequestIsToldSo(t *testing.T) {
	w, daemon := start(t)
	w.open(daemon)
	daemon.end(io.EOF)
	for range 3 {
		w.client.says(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`, ``)
		w.client.says(`{"jsonrpc":"2.0","id":"b","method":"tools/call"}`)
		w.client.hearsOne(`"id":"b"`, `"code":"not_sent"`, `"retryable":true`, "hermesd serve")
		w.client.says(`{`)
		w.client.hearsOne(`"id":null`, "hermesd serve")
	}
}

func TestTheSessionIsOpenedAgainAtTheNextDaemon(t *testing.T) {
	w, daemon := start(t)
	w.open(daemon)
	for n, line := range []string{
		`"method":"logging/setLevel","params":{"level":"error"}}`,
		`"method":"resources/subscribe","params":{"uri":"a://1"}}`,
		`"method":"resources/subscribe","params":{"uri":"a://2"}}`,
		`"method":"resources/unsubscribe","params":{"uri":"a://2"}}`,
	} {
		id := `{"jsonrpc":"2.0","id":` + string(rune('1'+n)) + `,`
		w.client.says(id + line)
		daemon.hears(id + line)
		daemon.says(id + `"result":{}}`)
		w.client.hears(id + `"result":{}}`)
	}
	for range 2 {
		daemon.end(errKilled)
		daemon = w.daemon()
		daemon.hears(again)
		w.client.says(`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)
		w.client.hearsOne(`"id":"early"`, "not_sent")
		daemon.says(`{"jsonrpc":"2.0","method":"notifications/message"}`, `{"jsonrpc":"2.0","id":"hermesd-rejoin-1",`+opened)
		daemon.hears(
			`{"jsonrpc":"2.0","id":"hermesd-rejoin-2","method":"logging/setLevel","params":{"level":"error"}}`,
			`{"jsonrpc":"2.0","id":"hermesd-rejoin-3","method":"resources/subscribe","params":{"uri":"a://1"}}`,
			understood,
		)
		w.client.hears(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1"}}`, changed)
		daemon.says(`{"jsonrpc":"2.0","id":"hermesd-rejoin-2","result":{}}`) // nothing to the client
		w.client.says(`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`)
		daemon.hears(`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`)
		daemon.says(`{"jsonrpc":"2.0","id":5,"result":{}}`)
		w.client.hears(`{"jsonrpc":"2.0","id":5,"result":{}}`)
	}
}

func TestAClientWithoutASessionIsJoinedAgainWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, daemon := start(t)
		daemon.end(errKilled)
		daemon = w.daemon()
		time.Sleep(time.Second)
		synctest.Wait()
		const line = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"protocolVersion":"2026-07-28"}}}`
		w.client.says(line)
		daemon.hears(line)
		w.client.out.Close()
		if _, err := daemon.in.ReadString('\n'); !errors.Is(err, io.EOF) {
			t.Errorf("the daemon hears %v", err)
		}
		daemon.end(io.EOF)
		w.client.hearsOne("shutting_down")
		w.ends(nil)
	})
}

func TestWhatListensGoesOnAtTheNextDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			listen = `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://1"]}}}`
			meta   = `"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}`
			heard  = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta
		)
		w, daemon := start(t)
		w.client.says(listen)
		daemon.hears(listen)
		daemon.says(heard)
		w.client.hears(heard)
		for range 2 {
			daemon.says(`{"jsonrpc":"2.0","id":2,"result":{}}`) // as a daemon that stops does
			daemon.end(io.EOF)
			daemon = w.daemon()
			daemon.hears(listen)
			w.client.hears(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+meta,
				`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1",`+meta)
			daemon.says(heard, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+meta)
			w.client.hears(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + meta)
		}
		daemon.end(io.EOF)
		synctest.Wait()
		w.client.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		daemon = w.daemon()
		time.Sleep(5 * time.Second)
		w.client.says(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		daemon.hears(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		daemon.end(io.EOF)
		w.client.hearsOne(`"id":3`)
		w.client.out.Close()
		w.ends(nil)
	})
}

func TestAQuestionIsAnsweredToTheDaemonThatAskedIt(t *testing.T) {
	w, daemon := start(t)
	w.open(daemon)
	daemon.says(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.client.hears(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	daemon.end(errKilled)
	w.client.hearsOne("notifications/cancelled", `"requestId":1,`)
	daemon = w.daemon()
	daemon.hears(again)
	daemon.says(`{"jsonrpc":"2.0","id":"hermesd-rejoin-1",` + opened)
	daemon.hears(understood)
	w.client.hears(changed)
	daemon.says(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"x":1}}`)
	w.client.hears(`{"jsonrpc":"2.0","id":"2:1","method":"ping"}`, `{"jsonrpc":"2.0","id":"2:2","method":"elicitation/create","params":{"x":1}}`)
	w.client.says(`{"jsonrpc":"2.0","id":1,"result":{"late":true}}`, `{"jsonrpc":"2.0","id":"2:1","result":{}}`)
	daemon.hears(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	daemon.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	w.client.hearsOne("notifications/cancelled", `"requestId":"2:2"`)
}

func TestADaemonThatRefusesTheSessionIsNotJoined(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"it refuses":              {`"error":{"code":1,"message":"too many sessions"}}`, "too many sessions"},
		"it speaks another MCP":   {`"result":{"protocolVersion":"2024-11-05"}}`, "speaks MCP 2024-11-05"},
		"it answers what is none": {`"result":[]}`, "speaks MCP"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, daemon := start(t)
				w.open(daemon)
				daemon.end(errKilled)
				daemon = w.daemon()
				daemon.hears(again)
				daemon.says(`{"jsonrpc":"2.0","id":"hermesd-rejoin-1",` + tt.answer)
				synctest.Wait()
				w.client.says(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
				w.client.hearsOne(`"id":4`, "not_sent", tt.want)
				w.client.out.Close()
				w.ends(nil)
			})
		})
	}
}

func TestADaemonThatNeverAnswersIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, daemon := start(t)
		w.open(daemon)
		daemon.end(errKilled)
		w.daemon().hears(again)
		begun := time.Now()
		w.daemon().hears(again) // the next one is reached
		if waited := time.Since(begun); waited < 10*time.Second || waited > 16*time.Second {
			t.Errorf("after %v", waited)
		}
		w.client.out.Close()
		synctest.Wait()
	})
}

func TestTheDaemonIsLookedForLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, daemon := start(t)
		daemon.end(errKilled)
		time.Sleep(23 * time.Second)
		synctest.Wait()
		const ms = time.Millisecond
		want := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 6300 * ms, 11300 * ms, 16300 * ms, 21300 * ms}
		if diff := cmp.Diff(want, w.dials); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.client.says(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		w.client.hearsOne("hermesd serve")
		synctest.Wait()
		if len(w.dials) != len(want)+1 {
			t.Error("a request did not have it looked for")
		}
		w.client.out.Close()
		w.ends(nil)
	})
}

func TestAClientThatIsRefusedIsToldWhy(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
	refusal := fmt.Errorf("there is no agent %q: %w", "nobody", admin.ErrRefused)
	want := []string{`"id":1`, `"code":"unauthenticated"`, `there is no agent \"nobody\"`, "--agent NAME"}
	for name, ask := range map[string]func(w *world, daemon *peer){
		"before it asks": func(w *world, daemon *peer) {
			daemon.end(refusal)
			synctest.Wait()
			w.client.says(call)
		},
		"after it asked": func(w *world, daemon *peer) {
			w.client.says(call)
			daemon.hears(call)
			daemon.end(refusal)
		},
		"while it asks": func(w *world, daemon *peer) {
			daemon.deaf()
			w.client.says(call)
			synctest.Wait()
			daemon.end(refusal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, daemon := start(t)
				ask(w, daemon)
				w.client.hearsOne(want...)
				w.ends(admin.ErrRefused)
			})
		})
	}
	t.Run("a client that asks nothing is not waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, daemon := start(t)
			daemon.end(refusal)
			w.ends(admin.ErrRefused)
		})
	})
}

func TestADaemonThatTakesAndDropsTheClientIsNotRushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, daemon := start(t)
		w.open(daemon)
		daemon.end(io.EOF)
		for range 5 { // a client without a session would be dropped at once
			daemon = w.daemon()
			daemon.end(errors.New("no agent is named desk"))
			synctest.Wait()
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		if n := len(w.dials); n > 12 {
			t.Errorf("it was looked for %d times in 25 s", n)
		}
		w.client.out.Close()
		w.ends(nil)
	})
}

func TestTheFirstDaemonMustTakeTheClient(t *testing.T) {
	refusal := errors.New("no agent is named nobody")
	w, daemon := start(t)
	daemon.end(refusal)
	w.ends(refusal)
	if err := join.Run(t.Context(), &join.Options{Dial: func(context.Context) (join.Conn, error) { return nil, errAway }}); !errors.Is(err, errAway) {
		t.Errorf("without a daemon: %v", err)
	}
}

func TestTheEndOfTheClientWaitsForWhatItAsked(t *testing.T) {
	w, daemon := start(t)
	w.client.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	daemon.hears(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	w.client.out.Close()
	if _, err := daemon.in.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("the daemon hears %v", err)
	}
	daemon.says(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.client.hears(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	daemon.end(io.EOF)
	w.ends(nil)
}
