package join_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/cmd/hermesd/join"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
)

// along is a daemon that a test plays, and that has the client's streams.
type along struct {
	events chan admin.Event
	end    error
	left   admin.Left
}

func (a *along) Next() (admin.Event, error) {
	if e, ok := <-a.events; ok {
		return e, nil
	}
	return admin.Event{}, a.end
}

func (a *along) TakeBack() (*admin.Left, error) { return &a.left, nil }
func (*along) Close() error                     { return nil }

// handOver joins a client to a daemon that did something with its streams and has ended.
func handOver(t *testing.T, end error, left admin.Left, did ...any) *world {
	t.Helper()
	in, toHermesd := io.Pipe()
	fromHermesd, out := io.Pipe()
	w := &world{
		t: t, client: &peer{t: t, in: bufio.NewReader(fromHermesd), out: toHermesd},
		conns: make(chan conn, 1), ended: make(chan error, 1),
	}
	a := &along{events: make(chan admin.Event, len(did)), end: end, left: left}
	for n := 0; n < len(did); n += 2 {
		a.events <- admin.Event{Kind: did[n].(admin.EventKind), Text: []byte(did[n+1].(string))}
	}
	close(a.events)
	go func() {
		handOver := func(context.Context) (admin.Along, error) { return a, nil }
		w.ended <- join.Run(t.Context(), &join.Options{In: in, Out: out, Dial: w.dial, HandOver: handOver})
		out.Close()
	}()
	t.Cleanup(func() { toHermesd.Close() })
	return w
}

func TestWhatADaemonThatHadTheStreamsLeavesOpenIsAnsweredOnce(t *testing.T) {
	const (
		heard, said, passed = admin.Heard, admin.Said, admin.Passed
		call                = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}` + "\n"
		result              = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
		another             = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	)
	unknown := []string{`"id":1,`, "outcome_unknown"}
	away := func(id int) []string { return []string{fmt.Sprintf(`"id":%d,`, id), "not_sent"} }
	for name, tt := range map[string]struct {
		did  []any
		left admin.Left
		says string // later
		want [][]string
	}{
		"a call that was not answered":                        {did: []any{heard, call}, want: [][]string{unknown}},
		"a call that was":                                     {did: []any{heard, call, said, result}},
		"an id that was used again":                           {did: []any{heard, call, said, result, heard, call}, want: [][]string{unknown}},
		"a call that was heard in pieces":                     {did: []any{heard, call[:9], heard, call[9:20], heard, call[20:]}, want: [][]string{unknown}},
		"two in one piece, and the begin of a third":          {did: []any{heard, call + another + another[:5]}, says: "\n", want: [][]string{unknown, {`"id":2,`, "shutting_down"}, {`"id":null`, "not_sent"}}},
		"an answer that is on its way":                        {did: []any{heard, call, said, result}, left: admin.Left{Unsaid: []byte(result)}, want: [][]string{{result}}},
		"half of one that is":                                 {did: []any{heard, call, said, result}, left: admin.Left{Unsaid: []byte(result[20:])}, want: [][]string{{result[20:]}}},
		"one that nobody told of":                             {did: []any{heard, call}, left: admin.Left{Unknown: []byte(result)}, want: [][]string{{result}}},
		"an answer in pieces, of which the last was not told": {did: []any{heard, call, said, result[:20]}, left: admin.Left{Unknown: []byte(result[20:])}, want: [][]string{{result[20:]}}},
		"an answer of which a piece is missing":               {did: []any{heard, call, said, result[:20]}, want: [][]string{{"\n"}, unknown}},
		"an answer of which only a piece is left":             {did: []any{heard, call}, left: admin.Left{Unknown: []byte(result[:20])}, want: [][]string{{result[:20] + "\n"}, unknown}},
		"half a message, whose rest is not heard":             {did: []any{heard, call[:20]}, says: call[20:], want: [][]string{away(1)}},
		"half a message, whose rest is on its way":            {did: []any{heard, call[:20]}, left: admin.Left{Unheard: []byte(call[20:] + another)}, want: [][]string{away(1), away(2)}},
		"what is on its way":                                  {left: admin.Left{Unheard: []byte(call)}, says: another, want: [][]string{away(1), away(2)}},
		"a message that is too long":                          {did: []any{heard, strings.Repeat("x", 9<<20), heard, strings.Repeat("x", 9<<20)}, says: "x\n" + call, want: [][]string{{`"id":null`, "16 MiB"}, away(1)}},
		"one of which the daemon has complained":              {did: []any{heard, strings.Repeat("x", 17<<20), heard, "\n" + call}, want: [][]string{unknown}},
		"what was passed on":                                  {did: []any{heard, call, passed, result}, want: [][]string{{result}}},
		"a piece of a line that was passed on":                {did: []any{heard, call, passed, result[:7], passed, result[7:]}, want: [][]string{{result}}},
		"a call that was cancelled":                           {did: []any{heard, call, heard, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n"}},
		"a question":                                          {did: []any{said, `{"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n"}, want: [][]string{{"notifications/cancelled", `"requestId":9`}}},
		"a question that was answered":                        {did: []any{said, `{"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n", heard, `{"jsonrpc":"2.0","id":9,"result":{}}` + "\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := handOver(t, errKilled, tt.left, tt.did...)
			said := make(chan error, 1)
			go func() {
				_, err := io.WriteString(w.client.out, tt.says)
				said <- err
			}()
			heard := map[int]bool{}
			for range tt.want { // in any order
				line, err := w.client.in.ReadString('\n')
				for n, texts := range tt.want {
					all := true
					for _, text := range texts {
						all = all && strings.Contains(line, text)
					}
					if all && !heard[n] && (len(line) > 1 || texts[0] == "\n") {
						heard[n] = true
						line = ""
						break
					}
				}
				if line != "" || err != nil {
					t.Fatalf("heard %q, %v", line, err)
				}
			}
			if err := errors.Join(<-said, w.client.out.Close()); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(w.client.in); err != nil || len(rest) > 0 {
				t.Errorf("heard more: %q, %v", rest, err)
			}
			w.ends(nil)
		})
	}
}

// The next daemon is joined as ever, with the session that the first one opened.
func TestTheSessionOfADaemonThatHadTheStreamsIsOpenedAgain(t *testing.T) {
	w := handOver(t, io.EOF, admin.Left{}, admin.Heard, initialize+"\n", admin.Said, `{"jsonrpc":"2.0","id":0,`+opened+"\n", admin.Heard, understood+"\n")
	daemon := w.daemon()
	daemon.hears(again)
	daemon.says(`{"jsonrpc":"2.0","id":"hermesd-rejoin-1",` + opened)
	daemon.hears(understood)
	w.client.hears(changed)
	w.client.says(`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`)
	daemon.hears(`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`)
}

func TestTheEndOfAClientWhoseStreamsADaemonHad(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	for name, tt := range map[string]struct {
		end  error
		want string
	}{"in peace": {io.EOF, "outcome_unknown"}, "with the daemon's": {errKilled, "outcome_unknown"}} {
		t.Run(name, func(t *testing.T) {
			w := handOver(t, tt.end, admin.Left{}, admin.Heard, call, admin.Heard, "") // the last line needs no end
			w.client.hearsOne(`"id":1,`, tt.want)
			if err := <-w.ended; errors.Is(err, io.EOF) || (err == nil) != errors.Is(tt.end, io.EOF) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestAClientThatMayNotHandOverIsToldWhy(t *testing.T) {
	w := handOver(t, fmt.Errorf("there is no agent %q: %w", "nobody", admin.ErrRefused), admin.Left{})
	w.client.says(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.client.hearsOne(`"id":1`, `"code":"unauthenticated"`, `there is no agent \"nobody\"`)
	w.ends(admin.ErrRefused)
}

// A daemon may go after it has sent a client away to come again. It is waited for, like any that goes.
func TestADaemonThatTakesNoStreamsAndGoesIsWaitedFor(t *testing.T) {
	w := handOver(t, fmt.Errorf("%w: too many", admin.ErrNotTaken), admin.Left{})
	w.client.says(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.client.hearsOne(`"id":1`, `"not_sent"`, errAway.Error()[:20])
	w.client.out.Close()
	w.ends(nil)
}

// A daemon that does not take the streams (it has enough of them, say) serves the client all the same, and nothing that the
// client has said already is turned away.
func TestAClientWhoseStreamsAreNotTakenIsServedByALink(t *testing.T) {
	in, toHermesd := io.Pipe()
	fromHermesd, out := io.Pipe()
	w := &world{t: t, client: &peer{t: t, in: bufio.NewReader(fromHermesd), out: toHermesd}, conns: make(chan conn, 1)}
	daemon := w.daemon()
	a := &along{events: make(chan admin.Event), end: fmt.Errorf("%w: too many", admin.ErrNotTaken)}
	close(a.events)
	go join.Run(t.Context(), &join.Options{
		In: in, Out: out, Dial: w.dial, HandOver: func(context.Context) (admin.Along, error) { return a, nil },
	})
	t.Cleanup(func() { toHermesd.Close() })
	w.client.says(initialize)
	daemon.hears(initialize)
	daemon.says(`{"jsonrpc":"2.0","id":0,` + opened)
	w.client.hears(`{"jsonrpc":"2.0","id":0,` + opened)
}
