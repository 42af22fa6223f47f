package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Whatever a client sends: each line becomes messages or one complaint, what is sent back is JSON, and the end of the
// stream is the end.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"notes_read"}}` + "\n{}\n[[]]\n"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]` + "\r\n\x00"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"method":"notifications/cancelled"}` + "\n\n[]\n\"\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		c := newStreamConn(struct {
			io.ReadWriter
			io.Closer
		}{&out, io.NopCloser(nil)}, slog.New(slog.DiscardHandler))
		var writing sync.WaitGroup
		writing.Go(c.write)
		lines := bufio.NewReader(bytes.NewReader(in))
		for {
			text, err := ReadLine(lines)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
			if err := c.take(t.Context(), line{text: text}); err != nil {
				t.Fatal(err)
			}
			for _, m := range c.queue {
				c.expect(m)
				if raw, err := jsonrpc.EncodeMessage(m); err != nil || !json.Valid(raw) {
					t.Errorf("%s: %v", raw, err)
				}
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		writing.Wait()
		for answers := bufio.NewScanner(&out); answers.Scan(); {
			if !json.Valid(answers.Bytes()) {
				t.Errorf("sent %q", answers.Text())
			}
		}
	})
}
