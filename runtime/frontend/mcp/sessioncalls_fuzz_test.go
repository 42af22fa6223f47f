package mcp

import (
	"testing"

	"github.com/hermesd/hermesd/internal/rawjson"
)

// Whatever a body says, what it begins can be taken out again, and answers nothing else.
func FuzzSessionRequests(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"id":1,"method":"a"},{"id":1.0,"method":"b"},{"id":"1","method":"c"}]`,
		`{"id":1.5,"method":"notifications/cancelled","params":{"requestId":1.5}}`, `{"id":{},"method":null}`, `[[]]`, `{"id":1`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newSessionCalls(newExactIDs())
		if s.cancel(body) {
			t.Error("a call was cancelled that is not there")
		}
		begun, id, err := s.begin(body)
		if rawjson.Valid(body) && (err != nil) != (id != nil) {
			t.Errorf("refused %s with %v", id, err)
		}
		if len(s.open.open) != len(begun) || s.open.answering != len(begun) {
			t.Errorf("%d requests are open, %d of them unanswered; %d were begun", len(s.open.open), s.open.answering, len(begun))
		}
		s.sent(body)
		s.drop(begun)
		if len(s.open.open) > 0 || s.open.answering != 0 {
			t.Errorf("%d requests are open, %d unanswered", len(s.open.open), s.open.answering)
		}
	})
}
