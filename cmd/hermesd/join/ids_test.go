package join_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
)

// An answer is known by what its id says, and each request is answered once: by the daemon, or in its place.
func TestEachRequestIsAnsweredOnceWhateverItsID(t *testing.T) {
	const unknown = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}`
	for name, tt := range map[string]struct{ line, answer string }{
		"a text that the daemon escapes less":     {`{"jsonrpc":"2.0","id":"\u0061\/\u003c","method":"tools/list"}`, `{"jsonrpc":"2.0","id":"a/<","result":{}}`},
		"a text that the daemon escapes more":     {`{"jsonrpc":"2.0","id":"ü","method":"tools/list"}`, `{"jsonrpc":"2.0","id":"\u00fc","result":{}}`},
		"half a message is no request":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call"`, unknown},
		"bytes that are no text are no request":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","x":"` + "\xff" + `"}`, unknown},
		"nor are they in a batch":                 {`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},"` + "\xff" + `"]`, unknown},
		"what has two ids is answered by neither": {`{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call"}`, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w, daemon := start(t)
			w.client.says(tt.line)
			daemon.hears(tt.line)
			daemon.says(tt.answer)
			w.client.hears(tt.answer)
			w.client.out.Close()
			if _, err := daemon.in.ReadString('\n'); err != io.EOF {
				t.Errorf("the daemon hears %v", err)
			}
			daemon.end(errKilled)
			w.ends(admin.ErrBroken)
			if rest, err := io.ReadAll(w.client.in); err != nil || len(rest) > 0 {
				t.Errorf("it said more: %s %v", rest, err)
			}
		})
	}
	t.Run("a session's", func(t *testing.T) {
		w, daemon := start(t)
		w.client.says(`{"jsonrpc":"2.0","id":"\u0030","method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"}}}`)
		daemon.hearsOne("initialize")
		daemon.says(`{"jsonrpc":"2.0","id":"0",` + opened)
		w.client.hearsOne(`"id":"0"`)
		next := w.daemon()
		daemon.end(errKilled)
		next.hears(again)
	})
}

// A client that does not read what it is told is not read either, once nothing of it can be passed on.
func TestWhatCannotBePassedOnIsNotTakenWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, daemon := start(t)
		go daemon.says(changed) // which the client does not hear yet
		synctest.Wait()
		daemon.deaf()
		const many = 1000
		said := make(chan struct{})
		go func() {
			defer close(said)
			for i := range many {
				w.client.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"x":%q}}`, i, strings.Repeat("x", 1000)))
			}
		}()
		synctest.Wait()
		select {
		case <-said:
			t.Error("all of it was taken")
		default:
		}
		w.client.hears(changed)
		daemon.end(errKilled)
		answered := map[string]bool{}
		for range many {
			line, err := w.client.in.ReadString('\n')
			if err != nil || !strings.Contains(line, `"not_sent"`) || answered[line] {
				t.Fatalf("heard %s (%v)", line, err)
			}
			answered[line] = true
		}
		<-said
		w.client.out.Close()
		w.ends(nil)
	})
}
