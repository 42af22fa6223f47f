package pluginsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
)

type named struct {
	ID string `json:"id"`
}

type inner struct {
	Deep int `json:"deep,omitempty" default:"7"`
}

type loop struct {
	Next *loop `json:"next"`
}

func TestTheSchemaComesFromTypesAndTags(t *testing.T) {
	const closed = `,"additionalProperties":false}`
	object := func(properties, required string) string {
		s := `{"type":"object","properties":{` + properties + `}`
		if required != "" {
			s += `,"required":[` + required + `]`
		}
		return s + closed
	}
	for name, c := range map[string]struct {
		schema func() (json.RawMessage, error)
		want   string
	}{
		"a field is required unless it may be left out or has a default": {
			pluginsdk.SchemaFor[struct {
				A string `json:"a"`
				B string `json:"b,omitempty"`
				C string `json:"c,omitzero"`
				D string `json:"d" default:"x"`
				E string
			}],
			object(`"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string","default":"x"},"E":{"type":"string"}`, `"a","E"`),
		},
		"dashed fields do not appear": {
			pluginsdk.SchemaFor[struct {
				A string `json:"-"`
				B string `json:"b"`
			}],
			object(`"b":{"type":"string"}`, `"b"`),
		},
		"numbers say their range": {
			pluginsdk.SchemaFor[struct {
				A int     `json:"a"`
				B uint8   `json:"b"`
				C int16   `json:"c"`
				D uint    `json:"d"`
				E float32 `json:"e" minimum:"-1.5" maximum:"2"`
			}],
			object(`"a":{"type":"integer"},"b":{"type":"integer","minimum":0,"maximum":255},"c":{"type":"integer","minimum":-32768,"maximum":32767},`+
				`"d":{"type":"integer","minimum":0},"e":{"type":"number","minimum":-1.5,"maximum":2}`, `"a","b","c","d","e"`),
		},
		"tags bound strings and lists": {
			pluginsdk.SchemaFor[struct {
				A string   `json:"a" jsonschema:"what, and why" minLength:"1" maxLength:"9" pattern:"^a+$" format:"email"`
				B []string `json:"b" enum:"x,y" minItems:"1" maxItems:"2"`
				C int      `json:"c" enum:"1,2" default:"2"`
				D bool     `json:"d" default:"true"`
				E []int    `json:"e" default:"[1,2]"`
			}],
			object(`"a":{"type":"string","description":"what, and why","minLength":1,"maxLength":9,"pattern":"^a+$","format":"email"},`+
				`"b":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1,"maxItems":2},`+
				`"c":{"type":"integer","default":2,"enum":[1,2]},"d":{"type":"boolean","default":true},`+
				`"e":{"type":"array","items":{"type":"integer"},"default":[1,2]}`, `"a","b"`),
		},
		"types that have a form of their own": {
			pluginsdk.SchemaFor[struct {
				A time.Time       `json:"a"`
				B []byte          `json:"b"`
				C json.RawMessage `json:"c"`
				D any             `json:"d"`
				E netip.Addr      `json:"e"`
				F *int            `json:"f"`
				G json.Number     `json:"g"`
				H [2]bool         `json:"h"`
			}],
			object(`"a":{"type":"string","format":"date-time"},"b":{"type":"string","contentEncoding":"base64"},"c":true,"d":true,`+
				`"e":{"type":"string"},"f":{"type":"integer"},"g":{"type":"number"},"h":{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2}`,
				`"a","b","c","d","e","f","g","h"`),
		},
		"maps and nested structs": {
			pluginsdk.SchemaFor[struct {
				A map[string]int `json:"a"`
				B []inner        `json:"b"`
				C inner          `json:"c"`
			}],
			object(`"a":{"type":"object","additionalProperties":{"type":"integer"}},`+
				`"b":{"type":"array","items":`+object(`"deep":{"type":"integer","default":7}`, "")+`},`+
				`"c":`+object(`"deep":{"type":"integer","default":7}`, ""), `"a","b","c"`),
		},
		"an embedded struct lends its fields": {
			pluginsdk.SchemaFor[struct {
				named
				B string `json:"b"`
			}],
			object(`"id":{"type":"string"},"b":{"type":"string"}`, `"id","b"`),
		},
		"an embedded struct with a name keeps them": {
			pluginsdk.SchemaFor[struct {
				Named named `json:"n"`
			}],
			object(`"n":`+object(`"id":{"type":"string"}`, `"id"`), `"n"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := c.schema()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(raw)); diff != "" {
				t.Error(diff)
			}
			again, err := c.schema()
			if err != nil || !bytes.Equal(raw, again) {
				t.Errorf("a second time it is %s, %v", again, err)
			}
		})
	}
}

func TestATypeOrTagWithoutASchemaIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		schema func() (json.RawMessage, error)
		want   string
	}{
		"a channel":            {pluginsdk.SchemaFor[struct{ A chan int }], "field A: chan int has no JSON form"},
		"a function":           {pluginsdk.SchemaFor[struct{ A func() }], "no JSON form"},
		"keys of a map":        {pluginsdk.SchemaFor[struct{ A map[int]string }], "keys of a JSON object are strings"},
		"a type inside itself": {pluginsdk.SchemaFor[loop], "contains itself"},
		"a default of another type": {pluginsdk.SchemaFor[struct {
			A int `default:"x"`
		}], `"x" is no JSON value of type "integer"`},
		"an enum of another type": {pluginsdk.SchemaFor[struct {
			A bool `enum:"yes"`
		}], "enum"},
		"a minimum that is no number": {pluginsdk.SchemaFor[struct {
			A int `minimum:"low"`
		}], `"low" is no number`},
		"a length that is no count": {pluginsdk.SchemaFor[struct {
			A string `maxLength:"-1"`
		}], "no count"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.schema()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
}

func nothing(context.Context, struct{}) (string, error) { return "", nil }

func raw(context.Context, json.RawMessage) (*pluginsdk.Result, error) { return nil, nil }

func TestAToolThatIsNotSoundSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		tool pluginsdk.Tool
		want string
	}{
		"no name":                     {pluginsdk.NewTool("", "", nothing, nil), "1 to 64 characters"},
		"a name with a space":         {pluginsdk.NewTool("a b", "", nothing, nil), "1 to 64 characters"},
		"a name that is too long":     {pluginsdk.NewTool(strings.Repeat("a", 65), "", nothing, nil), "1 to 64 characters"},
		"no function":                 {pluginsdk.NewTool[struct{}, string]("a", "", nil, nil), "no function"},
		"no raw function":             {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"object"}`), nil, nil), "no function"},
		"arguments that are a string": {pluginsdk.NewTool("a", "", func(context.Context, string) (string, error) { return "", nil }, nil), "struct or a map"},
		"a schema that is no JSON":    {pluginsdk.NewRawTool("a", "", json.RawMessage(`{`), raw, nil), "input schema does not compile"},
		"a schema of another type":    {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"array"}`), raw, nil), `must be "object"`},
		"a schema without a type":     {pluginsdk.NewRawTool("a", "", json.RawMessage(`{}`), raw, nil), `must be "object"`},
		"an unknown type":             {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"object","properties":{"x":{"anyOf":[{"type":"strng"}]}}}`), raw, nil), "/properties/x/anyOf/0/type: strng"},
		"a dangling reference":        {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#/$defs/no"}}}`), raw, nil), "does not compile"},
		"a pattern that is none":      {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"object","properties":{"x":{"pattern":"("}}}`), raw, nil), "does not compile"},
		"a reference to itself":       {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"object","$ref":"#"}`), raw, nil), "leads back to itself"},
		"references in a circle": {pluginsdk.NewRawTool("a", "", json.RawMessage(`{"type":"object","properties":{"x":{"allOf":[{"$ref":"#/$defs/a"}]}},
			"$defs":{"a":{"anyOf":[{"$ref":"#b"}]},"b":{"$anchor":"b","not":{"$ref":"#/properties/x"}}}}`), raw, nil), "leads back to itself"},
		"a faulty output schema": {pluginsdk.NewTool("a", "", nothing, &pluginsdk.ToolOptions{OutputSchema: json.RawMessage(`7`)}), "output schema does not compile"},
		"a default out of range": {pluginsdk.NewTool("a", "", func(context.Context, struct {
			A int `json:"a" default:"9" maximum:"5"`
		}) (string, error) {
			return "", nil
		}, nil), "does not compile"},
		"an example that does not fit": {pluginsdk.NewTool("a", "", nothing, &pluginsdk.ToolOptions{Examples: []any{map[string]any{"x": 1}}}), "example 1 does not fit"},
		"an unknown coldness":          {pluginsdk.NewTool("a", "", nothing, &pluginsdk.ToolOptions{Coldness: "lukewarm"}), `"lukewarm"`},
		"a negative timeout":           {pluginsdk.NewTool("a", "", nothing, &pluginsdk.ToolOptions{Timeout: -1}), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.tool.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want %q", err, c.want)
			}
			_, err := pluginsdk.NewServer(&pluginsdk.Plugin{Name: "p", Version: "1", Tools: []pluginsdk.Tool{c.tool}})
			if err == nil || !strings.Contains(err.Error(), `tool "`+c.tool.Name()+`"`) {
				t.Errorf("the plugin's error %v does not name the tool", err)
			}
		})
	}
}

func TestAReferenceThatGoesFurtherIntoTheValueIsFine(t *testing.T) {
	tree := json.RawMessage(`{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"list":{"type":"array","items":{"$ref":"#/$defs/n"}}},"$defs":{"n":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"additionalProperties":false}`)
	tool := pluginsdk.NewRawTool("a", "", tree, func(context.Context, json.RawMessage) (*pluginsdk.Result, error) { return &pluginsdk.Result{}, nil }, nil)
	if tool.Err() != nil {
		t.Fatal(tool.Err())
	}
	c := serveTools(t, tool)
	if o := invoke(t, c, "a", `{"left":{"right":{}},"list":[null,{"left":{}}]}`); o.err != nil {
		t.Errorf("a tree: %v", o.err)
	}
	if o := invoke(t, c, "a", `{"left":{"right":{"middle":{}}}}`); o.err.GetCode() != "invalid_arguments" {
		t.Errorf("a crooked tree: %v", o.err)
	}
}

func TestAPropertyMayBeNamedAfterAKeyword(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"type":{"type":"string","enum":["strng"]},"properties":{"type":"object","properties":{"items":{"type":"integer"}}}}}`)
	if err := pluginsdk.NewRawTool("a", "", schema, raw, nil).Err(); err != nil {
		t.Error(err)
	}
}

func TestAPluginThatIsNotSoundSaysEverythingAtOnce(t *testing.T) {
	good := pluginsdk.NewTool("a", "", nothing, nil)
	_, err := pluginsdk.NewServer(&pluginsdk.Plugin{
		Name: "a b", Tools: []pluginsdk.Tool{good, good, {}}, Config: &pluginsdk.Config{}, Capabilities: []string{"fly"},
	})
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{`name "a b"`, "no version", `two tools are named "a"`, "not made with NewTool", "not made with NewConfig", `no capability "fly"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	if _, err := pluginsdk.NewServer(&pluginsdk.Plugin{Name: "a", Version: "1"}); err == nil || !strings.Contains(err.Error(), "neither tools nor a hook") {
		t.Errorf("error = %v", err)
	}
	if _, err := pluginsdk.NewServer(nil); err == nil {
		t.Error("no plugin started")
	}
}
