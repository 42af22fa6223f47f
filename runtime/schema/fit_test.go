package schema_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

func define(s string) *tool.Definition {
	return &tool.Definition{Name: "t", SourceName: "kb", InputSchema: json.RawMessage(s)}
}

func fit(t testing.TB, s, args string) schema.Fit {
	t.Helper()
	return schema.NewCache(nil).Fit(define(s), json.RawMessage(args))
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, args string
		want         []schema.Fault
	}{
		"a nested value of the wrong type is named by its path": {
			`{"type":"object","properties":{"options":{"type":"object","properties":{"count":{"type":"integer"}}}}}`,
			`{"options":{"count":"many"}}`,
			[]schema.Fault{{"arguments.options.count", "type", "must be integer"}},
		},
		"all faults are told at once": {
			`{"type":"object","properties":{"priority":{"enum":["low","high"]},"n":{"type":"integer","minimum":1}},"required":["id","name"],"additionalProperties":false}`,
			`{"priority":"urgent","n":0,"extra":1}`,
			[]schema.Fault{
				{"arguments.extra", "additionalProperties", "is not an argument of this tool"},
				{"arguments.id", "required", "is required"},
				{"arguments.n", "minimum", "must be at least 1"},
				{"arguments.name", "required", "is required"},
				{"arguments.priority", "enum", `must be one of "low", "high"`},
			},
		},
		"a blind call learns what is missing": {
			`{"type":"object","properties":{"document_id":{"type":"string"}},"required":["document_id"]}`, `{}`,
			[]schema.Fault{{"arguments.document_id", "required", "is required"}},
		},
		"elements and odd keys have paths of their own": {
			`{"properties":{"a b":{"items":{"type":"integer"}}}}`, `{"a b":[1,true]}`,
			[]schema.Fault{{`arguments["a b"][1]`, "type", "must be integer"}},
		},
		"a member named like an index is no index": {
			`{"additionalProperties":{"type":"integer"}}`, `{"2":true}`,
			[]schema.Fault{{"arguments.2", "type", "must be integer"}},
		},
		"types of a union are told together": {
			`{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"boolean"}]}}}`, `{"a":"x"}`,
			[]schema.Fault{{"arguments.a", "type", "must be boolean or integer"}},
		},
		"a union names the fault of the member that was meant by its type": {
			`{"properties":{"a":{"anyOf":[{"type":"object","required":["x"]},{"type":"null"}]}}}`, `{"a":{}}`,
			[]schema.Fault{{"arguments.a.x", "required", "is required"}},
		},
		"a union names the fault of the member that was meant by its tag": {
			`{"properties":{"a":{"oneOf":[{"type":"object","properties":{"kind":{"const":"file"}},"required":["path"]},{"type":"object","properties":{"kind":{"const":"url"}},"required":["url"]}]}}}`,
			`{"a":{"kind":"url"}}`,
			[]schema.Fault{{"arguments.a.url", "required", "is required"}},
		},
		"a union without a hint describes its forms": {
			`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`,
			[]schema.Fault{{"arguments", "anyOf", "must fit one of 2 forms: (1) arguments.a is required; (2) arguments.b is required"}},
		},
		"references are followed inside the schema": {
			`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":true}`,
			[]schema.Fault{{"arguments.a", "type", "must be integer"}},
		},
		"arguments that are no object are refused, whatever the schema says": {
			`true`, `[]`, []schema.Fault{{"arguments", "type", "must be object"}},
		},
		"arguments that are no JSON are refused": {
			`{}`, `{"a":`, []schema.Fault{{"arguments", "json", "must be valid JSON"}},
		},
		"a key that comes twice is refused, since readers differ in which of the two they see": {
			`{}`, `{"x":{"command":"ls","command":"rm"}}`, []schema.Fault{{"arguments.x.command", "json", "is given twice"}},
		},
		"a number that nobody can compute with is refused": {
			`{"properties":{"a":{"minimum":1}}}`, `{"a":[1e999999999]}`, []schema.Fault{{"arguments.a[0]", "json", "is a number out of range"}},
		},
		"arguments that are nested too deeply are refused": {
			`{}`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
			[]schema.Fault{{"arguments.a" + strings.Repeat("[0]", 63), "json", "is nested too deeply"}},
		},
		"a fault inside text that was read as an object has its full path": {
			`{"properties":{"o":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, `{"o":"{\"n\":\"x\"}"}`,
			[]schema.Fault{{"arguments.o.n", "type", "must be integer"}},
		},
		"numbers keep their precision": {
			`{"properties":{"id":{"maximum":9007199254740992}}}`, `{"id":9007199254740993}`,
			[]schema.Fault{{"arguments.id", "maximum", "must be at most 9007199254740992"}},
		},
		"draft 4 is known by its $schema": {
			`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":1}`,
			[]schema.Fault{{"arguments.a", "exclusiveMinimum", "must be more than 1"}},
		},
		"draft 4 is recognised without a $schema": {
			`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":1}`,
			[]schema.Fault{{"arguments.a", "exclusiveMinimum", "must be more than 1"}},
		},
		"a tuple of draft 7 is recognised without a $schema": {
			`{"properties":{"a":{"items":[{"type":"integer"}]}}}`, `{"a":[true]}`,
			[]schema.Fault{{"arguments.a[0]", "type", "must be integer"}},
		},
		"a pattern that Go does not have leaves the rest of the schema in force": {
			`{"properties":{"a":{"pattern":"(?!x)y"},"b":{"type":"integer"}}}`, `{"a":"x","b":true}`,
			[]schema.Fault{{"arguments.b", "type", "must be integer"}},
		},
		"nullable does not accept other types": {
			`{"properties":{"a":{"type":"string","nullable":true}}}`, `{"a":1}`,
			[]schema.Fault{{"arguments.a", "type", "must be null or string"}},
		},
		"a refused name of a member is told": {
			`{"properties":{"a":{"propertyNames":{"maxLength":1}},"b":{},"c":{}}}`, `{"a":{"long":1},"b":1,"c":2}`,
			[]schema.Fault{{"arguments.a", "propertyNames", `must not have a member named "long"`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := fit(t, tt.schema, tt.args)
			if diff := cmp.Diff(tt.want, got.Faults); diff != "" {
				t.Error(diff)
			}
			if string(got.Arguments) != tt.args {
				t.Errorf("refused arguments were changed to %s", got.Arguments)
			}
		})
	}
}

func TestValidArgumentsKeepTheirBytes(t *testing.T) {
	for name, tt := range map[string]struct{ schema, args string }{
		"spaces, key order and number forms stay": {`{"properties":{"b":{"type":"number"}}}`, "{ \"b\" : 1.50,\n \"a\":\"\\u0041\" }"},
		"4.0 is an integer as it is":              {`{"properties":{"n":{"type":"integer"}}}`, `{"n":4.0}`},
		"a string that looks like JSON is text":   {`{"properties":{"content":{"type":"string"}}}`, `{"content":"[1,2]"}`},
		"null where OpenAPI allows it":            {`{"properties":{"a":{"type":"string","nullable":true}}}`, `{"a":null}`},
		"null beside a reference":                 {`{"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s","nullable":true}}}`, `{"a":null}`},
		"null beside an enum":                     {`{"properties":{"a":{"type":"string","enum":["x"],"nullable":true}}}`, `{"a":null}`},
		"a property that is called nullable":      {`{"properties":{"nullable":true,"a":{"type":"string"}}}`, `{"nullable":3,"a":"x"}`},
		"a tool without a schema":                 {``, `{"a":1}`},
		"an external reference is not fetched":    {`{"$ref":"http://127.0.0.1:1/x.json"}`, `{"a":1}`},
		"a file is not read":                      {`{"$ref":"file:///etc/hostname"}`, `{"a":1}`},
		"a malformed schema":                      {`{"type":`, `{"a":1}`},
		"a schema that breaks its own rules":      {`{"type":"objekt"}`, `{"a":1}`},
		"a schema with a number out of range":     {`{"minimum":1e999999999}`, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := fit(t, tt.schema, tt.args)
			if got.Faults != nil || got.Changes != nil || string(got.Arguments) != tt.args {
				t.Errorf("got %+v", got)
			}
			if got.Value == nil {
				t.Error("no decoded value")
			}
		})
	}
}

func TestCoercion(t *testing.T) {
	field := func(s string) string { return `{"type":"object","properties":{"a":` + s + `}}` }
	for name, tt := range map[string]struct{ schema, args, want string }{
		"integer from text":                              {field(`{"type":"integer"}`), `{"a":"10"}`, `{"a":10}`},
		"4.0 as text is 4":                               {field(`{"type":"integer"}`), `{"a":"4.0"}`, `{"a":4}`},
		"4.5 stays":                                      {field(`{"type":"integer"}`), `{"a":"4.5"}`, ``},
		"a large integer keeps every digit":              {field(`{"type":"integer"}`), `{"a":"9007199254740993"}`, `{"a":9007199254740993}`},
		"an identifier with leading zeros stays":         {field(`{"type":"integer"}`), `{"a":"007"}`, ``},
		"number from text keeps its form":                {field(`{"type":"number"}`), `{"a":" 1.50 "}`, `{"a":1.50}`},
		"nan is no number":                               {field(`{"type":"number"}`), `{"a":"NaN"}`, ``},
		"inf is no number":                               {field(`{"type":"number"}`), `{"a":"-inf"}`, ``},
		"hexadecimal is no number":                       {field(`{"type":"number"}`), `{"a":"0x10"}`, ``},
		"boolean in any case":                            {field(`{"type":"boolean"}`), `{"a":"True"}`, `{"a":true}`},
		"yes is no boolean":                              {field(`{"type":"boolean"}`), `{"a":"yes"}`, ``},
		"array from text":                                {field(`{"type":"array","items":{"type":"integer"}}`), `{"a":"[1,2]"}`, `{"a":[1,2]}`},
		"array from text with elements as text":          {field(`{"type":"array","items":{"type":"integer"}}`), `{"a":"[\"1\",2]"}`, `{"a":[1,2]}`},
		"a lone value becomes a list":                    {field(`{"type":"array","items":{"type":"string"}}`), `{"a":"x"}`, `{"a":["x"]}`},
		"a lone value is mended inside its list":         {field(`{"type":"array","items":{"type":"integer"}}`), `{"a":"7"}`, `{"a":[7]}`},
		"a lone object becomes a list":                   {field(`{"type":"array","items":{"type":"object"}}`), `{"a":{"b":1}}`, `{"a":[{"b":1}]}`},
		"null does not become a list":                    {field(`{"type":"array"}`), `{"a":null}`, ``},
		"text that begins a list but is none stays":      {field(`{"type":"array","items":{"type":"string"}}`), `{"a":"[1,"}`, ``},
		"object from text":                               {field(`{"type":"object"}`), `{"a":"{\"b\":1}"}`, `{"a":{"b":1}}`},
		"blank text is an object without required":       {field(`{"type":"object"}`), `{"a":" "}`, `{"a":{}}`},
		"blank text is no object with required":          {field(`{"type":"object","required":["x"]}`), `{"a":""}`, ``},
		"null from text":                                 {field(`{"type":["integer","null"]}`), `{"a":"null"}`, `{"a":null}`},
		"null stays text where text is allowed":          {field(`{"type":["string","null"]}`), `{"a":"null"}`, `{"a":"null"}`},
		"each member of a union is tried":                {field(`{"anyOf":[{"type":"boolean"},{"type":"integer"}]}`), `{"a":"5"}`, `{"a":5}`},
		"a union prefers reading to wrapping":            {field(`{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"object"}]}`), `{"a":"{\"b\":1}"}`, `{"a":{"b":1}}`},
		"an enum as text beside another type":            {field(`{"oneOf":[{"type":"string","enum":["auto"]},{"type":"integer"}]}`), `{"a":"5"}`, `{"a":5}`},
		"text that breaks an enum is not parsed":         {field(`{"type":["string","integer"],"enum":["x",5]}`), `{"a":"5"}`, ``},
		"nested containers":                              {`{"properties":{"o":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}}`, `{"o":{"l":[{"n":"1"},{"n":2}]}}`, `{"o":{"l":[{"n":1},{"n":2}]}}`},
		"text inside text":                               {`{"properties":{"o":{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}}}`, `{"o":"{\"l\":\"[1,\\\"2\\\"]\"}"}`, `{"o":{"l":[1,2]}}`},
		"references":                                     {`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"1"}`, `{"a":1}`},
		"all of":                                         {`{"allOf":[{"properties":{"a":{"type":"integer"}}}]}`, `{"a":"1"}`, `{"a":1}`},
		"a condition":                                    {`{"if":{"properties":{"k":{"const":"n"}}},"then":{"properties":{"a":{"type":"integer"}}}}`, `{"k":"n","a":"1"}`, `{"a":1,"k":"n"}`},
		"additional members":                             {`{"additionalProperties":{"type":"integer"}}`, `{"x":"1"}`, `{"x":1}`},
		"members by pattern":                             {`{"patternProperties":{"^n_":{"type":"integer"}}}`, `{"n_a":"1","b":"1"}`, `{"b":"1","n_a":1}`},
		"the arguments themselves":                       {`{"type":"object"}`, `"{\"a\":1}"`, `{"a":1}`},
		"blank arguments":                                {`{"type":"object"}`, `""`, `{}`},
		"a valid field beside a mended one is untouched": {`{"properties":{"s":{"type":"string"},"n":{"type":"integer"}}}`, `{"s":"{\"n\":\"1\"} <&>","n":"1"}`, `{"n":1,"s":"{\"n\":\"1\"} <&>"}`},
		"nothing is dropped to make it fit":              {`{"properties":{"a":{"type":"integer"}},"additionalProperties":false}`, `{"a":"1","b":2}`, ``},
		"a contained item is no rule for all items":      {field(`{"type":"array","contains":{"type":"integer"},"items":{"type":["string","integer"]}}`), `{"a":["5"]}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			got := fit(t, tt.schema, tt.args)
			if tt.want == "" {
				if got.Faults == nil {
					t.Fatalf("accepted as %s", got.Arguments)
				}
				return
			}
			if got.Faults != nil {
				t.Fatalf("refused: %+v", got.Faults)
			}
			if string(got.Arguments) != tt.want {
				t.Errorf("got %s, want %s", got.Arguments, tt.want)
			}
			if changed := tt.want != tt.args; changed != (got.Changes != nil) {
				t.Errorf("changes: %+v", got.Changes)
			}
		})
	}
}

func TestChangesAreTold(t *testing.T) {
	got := fit(t, `{"properties":{"ids":{"type":"array","items":{"type":"integer"}},"max":{"type":"integer"}}}`, `{"ids":"[\"1\",2]","max":"10"}`)
	want := []schema.Change{
		{"arguments.ids", "string", "array"},
		{"arguments.ids[0]", "string", "number"},
		{"arguments.max", "string", "number"},
	}
	if diff := cmp.Diff(want, got.Changes); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnusableSchemaIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	c := schema.NewCache(&schema.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		c.Fit(define(`{"$ref":"https://example.com/s"}`), json.RawMessage(`{}`))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	for _, want := range []string{"tool=t", "source=kb", "not followed"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the warning lacks %q:\n%s", want, log.String())
		}
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	c := schema.NewCache(&schema.Options{Schemas: 2})
	for _, typ := range []string{"integer", "boolean", "null", "integer"} {
		got := c.Fit(define(`{"properties":{"a":{"type":"`+typ+`"}}}`), json.RawMessage(`{"a":"x"}`))
		if len(got.Faults) != 1 || got.Faults[0].Detail != "must be "+typ {
			t.Errorf("%s: %+v", typ, got.Faults)
		}
	}
}

func TestArgumentsCannotMakeASchemaExplode(t *testing.T) {
	deep := strings.Repeat(`{"x":`, 60) + `"y"` + strings.Repeat(`}`, 60)
	got := fit(t, `{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"properties":{"x":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`, deep)
	if len(got.Faults) != 1 || got.Faults[0].Constraint != "size" {
		t.Errorf("got %+v", got.Faults)
	}
	for range 2 { // what refers to itself without looking inside is refused, not followed
		if got := fit(t, `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `{}`); len(got.Faults) != 1 {
			t.Errorf("got %+v", got.Faults)
		}
	}
}

func BenchmarkFitSmall(b *testing.B) {
	c := schema.NewCache(nil)
	d := define(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1},"kind":{"enum":["a","b"]}},"required":["path"],"additionalProperties":false}`)
	args := json.RawMessage(`{"path":"docs/readme.md","limit":10,"kind":"a"}`)
	b.ReportAllocs()
	for b.Loop() {
		if f := c.Fit(d, args); f.Faults != nil {
			b.Fatal(f.Faults)
		}
	}
}
