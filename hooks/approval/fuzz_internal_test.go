package approval

import (
	"encoding/json"
	"testing"
)

func FuzzParseAnswers(f *testing.F) {
	f.Add([]byte(`{"answers":[{"id":"a","binding":"b","choice":"once","reason":"r"}]}`))
	f.Add([]byte(`{"answers":[`))
	requests := []Pending{{ID: "a", Binding: "b"}}
	f.Fuzz(func(t *testing.T, body []byte) {
		reply, err := parseAnswers(requests, body)
		for id := range reply {
			if id != "a" || err != nil {
				t.Errorf("%q answers about %q, %v", body, id, err)
			}
		}
	})
}

func FuzzPatternOf(f *testing.F) {
	f.Add([]byte(`{"a":"x*","b":[1,{"c":null}]}`), []byte(`{"a":"xy","b":[1,{"c":null}]}`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"a":2}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		p, err := PatternOf(one)
		if err != nil {
			return
		}
		if !p.Covers(one) {
			t.Errorf("%v does not cover %q, of which it was made", p, one)
		}
		if !p.Covers(two) {
			return
		}
		if !json.Valid(two) && json.Valid(one) {
			t.Errorf("%v covers %q, which is no JSON", p, two)
		}
	})
}
