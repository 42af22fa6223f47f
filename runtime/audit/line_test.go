package audit

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/tool"
)

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
