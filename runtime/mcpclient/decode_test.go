package mcpclient_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/runtime/mcpclient"
)

func FuzzReceive(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`, `{"jsonrpc":"2.0","id":1073741825,"error":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1073741825,"progress":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":[]}`, `[{"method":"elicitation/create","id":"a"},{}]`,
		`{"method":"sampling/createMessage","id":{},"params":7}`, `{"method":"notifications/cancelled","params":{"requestId":[]}}`, `{"method":{}}`, `7`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, data []byte) { mcpclient.Receive(data) })
}

func FuzzReadResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"}],"structuredContent":{},"isError":true,"_meta":{"io.modelcontextprotocol/x":1,"y":2}}`))
	f.Add([]byte(`{"resultType":"input_required","inputRequests":{"a":{"method":"x","params":{}}},"requestState":"s"}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if json.Valid(raw) {
			// Whether it is accepted does not matter here, only that reading it ends well.
			if err := mcpclient.ReadResult(raw); err != nil {
				return
			}
		}
	})
}

func FuzzReadCache(f *testing.F) {
	f.Add([]byte(`{"format":2,"tools":[{"name":"a"}],"resources":[{"uri":"a"}]}`))
	f.Add([]byte(`{"format":1,"tools":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if tools, err := mcpclient.ReadCache(data); err == nil && tools == nil {
			t.Error("neither a list nor an error")
		}
	})
}

// What a server's library answers stays JSON, whatever is taken out of it and put into it.
func FuzzFetched(f *testing.F) {
	f.Add([]byte(`{"contents":[{"uri":"a","text":"b"}],"_meta":{"io.modelcontextprotocol/x":1,"y":2},"resultType":"complete"}`))
	f.Add([]byte(`{"inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // checked when it comes in
		}
		if raw, err := mcpclient.Fetched(data); err == nil && raw != nil && !json.Valid(raw) {
			t.Errorf("%s became %s", data, raw)
		}
		if raw := mcpclient.Renamed(data); !json.Valid(raw) {
			t.Errorf("%s was renamed to %s", data, raw)
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\nevent: message\ndata: {}\n\ndata: a\ndata: b\n\n: comment\nretry: 5\n\n"))
	f.Add([]byte("data\r\n\r\ndata:x\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 64
		data, err := mcpclient.Events(stream, most)
		for _, d := range data {
			if len(d) > most {
				t.Errorf("an event of %d bytes, error %v", len(d), err)
			}
		}
	})
}

func TestEventsOfAStream(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
		fails  bool
	}{
		"lines of data are joined":                   {"data: a\ndata: b\n\n", []string{"a\nb"}, false},
		"a comment and unknown fields are no event":  {": hi\n\nfoo: bar\n\n", nil, false},
		"carriage returns are ignored":               {"data: a\r\n\r\n", []string{"a"}, false},
		"an event without its empty line is dropped": {"data: a\n\ndata: b\n", []string{"a"}, false},
		"an event with an id alone has no data":      {"id: 7\n\n", []string{""}, false},
		"only one space is taken away":               {"data:  a\n\n", []string{" a"}, false},
		"one that is too long is an error":           {"data: " + strings.Repeat("x", 200) + "\n\n", nil, true},
		"so is one that is too long in sum":          {strings.Repeat("data: xxxxxxxxxxxxxxxxxxxx\n", 10) + "\n", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mcpclient.Events([]byte(c.stream), 100)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nb\r\n"+strings.Repeat("c", 100)+"\nd"), 10)
	f.Fuzz(func(t *testing.T, input []byte, most int) {
		most = max(1, most%64)
		r := bufio.NewReaderSize(bytes.NewReader(input), 16)
		for want := input; ; {
			data, over, err := mcpclient.ReadLine(r, most)
			line, rest, _ := bytes.Cut(want, []byte("\n"))
			switch {
			case len(line) > most && over == nil:
				t.Fatalf("a line of %d bytes was kept; the limit is %d", len(line), most)
			case len(line) <= most && (over != nil || !bytes.Equal(data, bytes.TrimSuffix(line, []byte("\r")))):
				t.Fatalf("read %q, want %q", data, line)
			}
			if want = rest; err != nil {
				if err != io.EOF {
					t.Fatal(err)
				}
				return
			}
		}
	})
}
