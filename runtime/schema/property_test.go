package schema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/runtime/schema"
)

// schemas draws a schema, down to some depth, of the keywords that coercion and validation look at.
func schemas(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		kinds := []string{"integer", "number", "string", "boolean", "null", "enum", "types"}
		if depth > 0 {
			kinds = append(kinds, "object", "array", "anyOf", "oneOf", "allOf", "ref")
		}
		switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
		case "enum":
			return map[string]any{"enum": []any{"a", "1", 1, true, nil}}
		case "types":
			types := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"integer", "number", "string", "boolean", "null", "array", "object"}), 1, 3, rapid.ID[string]).Draw(t, "types")
			return map[string]any{"type": types}
		case "object":
			s := map[string]any{"type": "object", "properties": map[string]any{"a": schemas(depth-1).Draw(t, "a"), "b": schemas(depth-1).Draw(t, "b")}}
			if rapid.Bool().Draw(t, "strict") {
				s["required"], s["additionalProperties"] = []string{"a"}, false
			}
			return s
		case "array":
			return map[string]any{"type": "array", "items": schemas(depth-1).Draw(t, "items")}
		case "anyOf", "oneOf", "allOf":
			return map[string]any{kind: rapid.SliceOfN(schemas(depth-1), 1, 3).Draw(t, "members")}
		case "ref":
			return map[string]any{"$ref": "#"}
		default:
			return map[string]any{"type": kind}
		}
	})
}

// values draws what models send: right types, and the same as text.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 3
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]any{1, 2.5, true, false, nil, 4.0, -7}).Draw(t, "scalar")
		case 1, 2:
			return rapid.SampledFrom([]string{"1", "4.0", "4.5", "true", "FALSE", "null", "", " ", "a", "[1,\"2\"]", "{\"a\":\"1\"}", "[", "{", "NaN", "1e3", "007"}).Draw(t, "text")
		case 3:
			return rapid.StringN(0, 5, -1).Draw(t, "any text")
		case 4:
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), values(depth-1), 0, 3).Draw(t, "object")
		case 5:
			return rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "array")
		default:
			raw, err := json.Marshal(values(depth-1).Draw(t, "inside text"))
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
	})
}

func marshal(t *rapid.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// valid asks the validator itself, without anything of ours.
func valid(t *rapid.T, source, args []byte) bool {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("x:y", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("x:y")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v) == nil
}

func TestCoercionChangesNoValidValueAndIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{"type": "object", "properties": map[string]any{"a": schemas(3).Draw(t, "a"), "b": schemas(3).Draw(t, "b")}}
		source := marshal(t, object)
		args := marshal(t, rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), values(3), 0, 2).Draw(t, "arguments"))
		c := schema.NewCache(nil)
		got := c.Fit(define(string(source)), args)
		switch {
		case valid(t, source, args):
			if !bytes.Equal(got.Arguments, args) || got.Changes != nil || got.Faults != nil {
				t.Fatalf("valid arguments were changed to %s, %+v, %+v", got.Arguments, got.Changes, got.Faults)
			}
		case got.Faults == nil:
			if got.Changes == nil || !valid(t, source, got.Arguments) {
				t.Fatalf("accepted as %s, %+v", got.Arguments, got.Changes)
			}
		default:
			if !bytes.Equal(got.Arguments, args) || got.Value != nil {
				t.Fatalf("refused arguments were changed to %s", got.Arguments)
			}
		}
		again := c.Fit(define(string(source)), got.Arguments)
		if got.Faults == nil && (again.Changes != nil || !bytes.Equal(again.Arguments, got.Arguments)) {
			t.Fatalf("coerced twice: %s, then %s", got.Arguments, again.Arguments)
		}
		if diff := cmp.Diff(got.Faults, again.Faults); diff != "" {
			t.Fatalf("other faults the second time: %s", diff)
		}
	})
}

func TestAStringThatMayBeAStringIsNeverParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"[1,2]", "{}", "1", "true", "null", ""})).Draw(t, "text")
		args := marshal(t, map[string]any{"s": text, "n": "1"}) // n has to be coerced
		got := schema.NewCache(nil).Fit(define(`{"properties":{"s":{"type":"string"},"n":{"type":"integer"}}}`), args)
		want := strings.ToValidUTF8(text, "\ufffd")
		if got.Faults != nil || got.Value["s"] != want {
			t.Fatalf("%q became %v, %+v", text, got.Value["s"], got.Faults)
		}
	})
}

// FuzzDecode holds the decoder of arguments against the standard library's.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,true,null,"x\u00e9\n"]}`, ` { "a" : { } } `, `{"a":"\ud800"}`, `{"a":1,"a":2}`, `{"":-0}`, "{\"\xff\":1}", `[`, `{"a":1e9999}`} {
		f.Add([]byte(s))
	}
	c := schema.NewCache(nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := c.Fit(define(``), raw)
		var want map[string]any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		err := d.Decode(&want)
		if got.Faults != nil {
			return // which are refused has its own test
		}
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) { // an object written as text
			return
		}
		if err != nil || want == nil {
			t.Fatalf("accepted what is no object: %v", err)
		}
		if diff := cmp.Diff(want, got.Value); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzFit gives a schema and arguments as strangers may send them: nothing may panic or hang, and what is accepted is
// an object.
func FuzzFit(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":"1"}`)
	f.Add(`{"$ref":"#"}`, `{}`)
	f.Add(`{"nullable":true,"properties":{"a":{"nullable":true,"$ref":"#/properties/b"},"b":{"enum":[[],{}],"nullable":true}}}`, `{"a":null,"b":"[]"}`)
	f.Add(`{"patternProperties":{"(":{}}}`, `{"(":1}`)
	f.Add(`{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x","oneOf":[{"minimum":"1"}]}}}`, `"{}"`)
	f.Fuzz(func(t *testing.T, source, args string) {
		got := schema.NewCache(nil).Fit(define(source), json.RawMessage(args))
		if got.Faults == nil && (got.Value == nil || !json.Valid(got.Arguments)) {
			t.Fatalf("%+v", got)
		}
	})
}
