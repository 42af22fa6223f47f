package pluginsdk

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

type fuzzed struct {
	A string            `json:"a" minLength:"1"`
	B int8              `json:"b,omitempty" default:"3"`
	C []float32         `json:"c,omitempty" maxItems:"3"`
	D map[string]fuzzIn `json:"d,omitempty"`
	E *time.Time        `json:"e,omitempty"`
	F fuzzIn            `json:"f,omitzero"`
	G []byte            `json:"g,omitempty"`
	H json.RawMessage   `json:"h,omitempty"`
}

type fuzzIn struct {
	X bool `json:"x,omitempty" default:"true"`
}

// Whatever an agent sends is either read into the arguments or refused as invalid, never a panic or another error.
func FuzzArguments(f *testing.F) {
	s, err := SchemaFor[fuzzed]()
	if err != nil {
		f.Fatal(err)
	}
	compiled, err := compileSchema(s, true)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"a":"x"}`, `{"a":"x","b":300}`, `{"a":"x","c":[1e39]}`, `{"a":"x","d":{"k":{"x":false}}}`, `{"a":"x","e":"2026-01-01T00:00:00Z"}`,
		`{"a":"x","g":"AQ=="}`, `{"A":"x"}`, `{"a":"x","a":1}`, `null`, `[]`, `{`, `{"a":"x"}{`, `{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var in fuzzed
		err := compiled.decode(raw, &in, true)
		var refused *Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != InvalidArguments) {
			t.Fatalf("%q: %v", raw, err)
		}
		if err == nil && in.A == "" {
			t.Fatalf("%q was read as %+v", raw, in)
		}
	})
}

// Whatever a file of foreign tools holds as a schema compiles or is refused, and then validates without a panic.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{`{"type":"object"}`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"type":"object","$defs":{"a":{"$anchor":"x"}},"$ref":"#x"}`,
		`{"type":"object","properties":{"a":{"enum":[1,null,"x"]}},"required":["a"]}`, `{"type":["object"]}`, `{"type":"object","items":[true,false]}`,
		`{"type":"object","$dynamicRef":"#x"}`, `{"type":"object","$ref":"#"}`,
		`{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#b"}},"b":{"$anchor":"b","$ref":"#/allOf/0"}}}`,
		`{"type":"object","$id":"http://x/y","$ref":"http://x/y#"}`, `{"type":"object","$id":"http://x/y","$ref":"y"}`, `{"type":"object","$Ref":"#"}`, `{"type":"object","multipleOf":0,"pattern":"("}`, `{"type":"object","dependencies":{"a":["b"]},"$schema":"http://json-schema.org/draft-07/schema#"}`} {
		f.Add([]byte(seed), []byte(`{"a":1}`))
	}
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		s, err := compileSchema(raw, false)
		if err != nil {
			return
		}
		var refused *Error
		if err := s.validate(args); err != nil && (!errors.As(err, &refused) || refused.Code != InvalidArguments) {
			t.Fatal(err)
		}
	})
}
