package rawjson_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/hermesd/hermesd/internal/rawjson"
)

func TestOneValueInUTF8IsValid(t *testing.T) {
	for text, want := range map[string]bool{`{"a":"é"}`: true, ` 1 `: true, `{} {}`: false, `{`: false, "\"\xff\"": false, "\"\xed\xa0\x80\"": false} {
		if got := rawjson.Valid([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func FuzzMembersAndElements(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `{"a":1,"b":[{"c":"}"}]}`, `{ "a\u0041" : "\\\"" , "b" : null }`, `{"a":{"b":[1,2,{"c":[]}]}}`, `{"a"`, `{"a":`, `[1,"]",{}]`, `"x"`, `{"a":1}garbage`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]string{}
		object := rawjson.Members(raw, func(key string, value json.RawMessage) { got[key] = string(value) })
		var list []string
		array := rawjson.Elements(raw, func(value json.RawMessage) { list = append(list, string(value)) })
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return // no promise but to come back
		}
		var want map[string]json.RawMessage
		if isObject := json.Unmarshal(raw, &want) == nil && want != nil; isObject != object || isObject != rawjson.IsObject(raw) {
			t.Fatalf("object: %v, want %v", object, isObject)
		}
		if len(want) != len(got) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
		for key, value := range want {
			if got[key] != string(value) {
				t.Errorf("%q is %s, want %s", key, got[key], value)
			}
		}
		var wantList []json.RawMessage
		if isArray := json.Unmarshal(raw, &wantList) == nil && wantList != nil; isArray != array {
			t.Fatalf("array: %v, want %v", array, isArray)
		}
		if len(list) != len(wantList) {
			t.Fatalf("%d elements, want %d", len(list), len(wantList))
		}
		for i, value := range wantList {
			if list[i] != string(value) {
				t.Errorf("element %d is %s, want %s", i, list[i], value)
			}
		}
	})
}

func FuzzString(f *testing.F) {
	for _, seed := range []string{`""`, `"a"`, `"\u0041\n"`, `"\ud800"`, `null`, `7`, `"`, `"\`, `{"a":"b"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := rawjson.String(raw)
		var want string
		if !utf8.Valid(raw) || !json.Valid(raw) || len(raw) == 0 || raw[0] <= ' ' || raw[len(raw)-1] <= ' ' {
			return
		}
		if isText := raw[0] == '"' && json.Unmarshal(raw, &want) == nil; isText != ok || got != want {
			t.Errorf("%s is %q, %v; want %q, %v", raw, got, ok, want, isText)
		}
	})
}

func TestAbsentAndNullAreNull(t *testing.T) {
	for raw, want := range map[string]bool{"": true, "null": true, `"null"`: false, "0": false, "{}": false} {
		if got := rawjson.IsNull(json.RawMessage(raw)); got != want {
			t.Errorf("%q: %v", raw, got)
		}
	}
}
