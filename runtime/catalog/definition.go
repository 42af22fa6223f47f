package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"slices"

	"github.com/hermesd/hermesd/runtime/tool"
)

// unusableSchema returns why no client would accept an input schema, or "". It looks at the outermost object only: one
// wrong shape there makes model APIs refuse the whole request, with every other tool in it. Whether the rest compiles is
// for the package schema to say.
func unusableSchema(raw json.RawMessage) string {
	var s struct {
		Type     json.RawMessage `json:"type"`
		Function json.RawMessage `json:"function"`
	}
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return "it has no input schema; the least is {\"type\": \"object\"}"
	case raw[0] != '{' || !json.Valid(raw):
		return "its input schema is no JSON object"
	case json.Unmarshal(raw, &s) != nil:
		return "its input schema cannot be read"
	case string(s.Type) == `"function"` || s.Type == nil && isObject(s.Function):
		return "its input schema is a whole function definition; put the parameters alone there"
	case s.Type != nil && !allowsObject(s.Type):
		return "its input schema is not of type object"
	}
	return ""
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func allowsObject(raw json.RawMessage) bool {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) == nil {
		return one == "object"
	}
	return json.Unmarshal(raw, &many) == nil && slices.Contains(many, "object")
}

// digest identifies everything that a definition says.
type digest [16]byte

func digestOf(d *tool.Definition) digest {
	h := sha256.New()
	for _, s := range []string{d.Name, d.OwnName, d.Toolset, string(d.Source), d.SourceName, d.Title, d.Description, string(d.Coldness)} {
		writeField(h, s)
	}
	for _, raw := range []json.RawMessage{d.InputSchema, d.OutputSchema, d.Icons, d.Meta} {
		writeField(h, string(raw))
	}
	for _, list := range [][]string{d.Keywords, d.RequiresEnv} {
		writeNumber(h, uint64(len(list)))
		for _, s := range list {
			writeField(h, s)
		}
	}
	writeNumber(h, uint64(len(d.Examples)))
	for _, raw := range d.Examples {
		writeField(h, string(raw))
	}
	a := d.Annotations
	for _, b := range []*bool{a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld, a.ParallelSafe} {
		switch {
		case b == nil:
			writeNumber(h, 0)
		case *b:
			writeNumber(h, 1)
		default:
			writeNumber(h, 2)
		}
	}
	writeNumber(h, uint64(d.Timeout))
	writeNumber(h, uint64(d.MaxResultBytes))
	return digest(h.Sum(nil)[:16])
}

func writeField(h hash.Hash, s string) {
	writeNumber(h, uint64(len(s)))
	h.Write([]byte(s))
}

func writeNumber(h hash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}
