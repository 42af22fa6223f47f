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
			io.Reader
			io.Writer
			io.Closer
		}{bytes.NewReader(in), &out, io.NopCloser(nil)}, slog.New(slog.DiscardHandler))
		var working sync.WaitGroup
		working.Go(c.write)
		working.Go(func() { c.read(t.Context()) })
		for {
			m, err := c.Read(t.Context())
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
			if raw, err := jsonrpc.EncodeMessage(m); err != nil || !json.Valid(raw) {
				t.Errorf("%s: %v", raw, err)
			}
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				if err := c.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)}); err != nil {
					t.Error(err)
				}
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		working.Wait()
		for answers := bufio.NewScanner(&out); answers.Scan(); {
			if !json.Valid(answers.Bytes()) {
				t.Errorf("sent %q", answers.Text())
			}
		}
	})
}
