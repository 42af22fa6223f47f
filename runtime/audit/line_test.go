package audit

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/tool"
)

// line is an entry as the journal keeps it.
func (e *Entry) line() []byte { return append(e.append(nil), e.Hash...) }

func TestALineOfTheJournalIsTheWholeRecord(t *testing.T) {
	sum := Digest(bytes.Repeat([]byte{1}, 32))
	for name, e := range map[string]Entry{
		"full": {
			Seq: 7, Time: time.Unix(1, 2).UTC(), Kind: tool.RecordFinished, CallID: "id", Agent: "desk", Session: "s", Via: tool.ViaBridge,
			Tool: "files_read", Source: tool.SourcePlugin, SourceName: "files", ArgsDigest: sum, Args: `{"a":1}`, Coerced: json.RawMessage(`["/a"]`),
			Rule: "r", Approval: "a", By: "b", Outcome: tool.OutcomeError, Code: tool.Timeout, Duration: time.Second, ResultDigest: sum, Hash: sum,
		},
		"bare": {Time: time.Unix(0, 0).UTC(), Hash: sum},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readLine(e.line())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALineIsWhatIsHashedAndTheHash(t *testing.T) {
	c := newChain()
	var head Head
	var lines []byte
	for i, e := range []Entry{{CallID: "1", Tool: "files_read"}, {}, {CallID: "2", Args: "{}"}} {
		e.Time = time.Unix(0, 0).UTC()
		before, begin := head, len(lines)
		head, lines = c.link(head, &e, lines)
		got, err := readLine(lines[begin:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, got); diff != "" || got.Seq != int64(i+1) {
			t.Errorf("record %d: %s", got.Seq, diff)
		}
		if fault := follow(newChain(), before, &got); fault != nil {
			t.Errorf("record %d %s", fault.Seq, fault.Reason)
		}
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add((&Entry{CallID: "id", Tool: "files_read", Hash: make(Digest, 32)}).line())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := readLine(raw)
		if err != nil {
			return
		}
		again, err := readLine(e.line())
		if err != nil || !cmp.Equal(e, again) {
			t.Errorf("%+v became %+v, %v", e, again, err)
		}
	})
}
