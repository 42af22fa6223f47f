package search

import (
	"bytes"
	"encoding/json"
)

// Bounds on what a hostile schema can make the index do.
const (
	maxSchemaBytes = 256 << 10 // of one schema; what follows is not read
	maxSchemaDepth = 12        // of nested schemas; deeper ones are skipped
	maxParameters  = 40        // of one tool; further ones are not indexed
	maxParamText   = 400       // bytes of one parameter's description
)

// schemaWalker reads the names and descriptions of parameters out of a JSON Schema. It works on tokens, so that depth
// costs no stack, and stops quietly at the first malformed byte with what it has found so far.
type schemaWalker struct {
	dec   *json.Decoder
	names int
	name  func(string)
	text  func(string)
}

// walkSchema calls name for the parameter names of every level and text for their descriptions.
func walkSchema(raw json.RawMessage, name, text func(string)) {
	if len(raw) == 0 {
		return
	}
	if len(raw) > maxSchemaBytes {
		raw = raw[:maxSchemaBytes]
	}
	w := schemaWalker{dec: json.NewDecoder(bytes.NewReader(raw)), name: name, text: text}
	w.value(0, false)
}

// value reads one schema (or a list of them); described says whether its description is a parameter's.
func (w *schemaWalker) value(depth int, described bool) bool {
	tok, err := w.dec.Token()
	if err != nil {
		return false
	}
	switch {
	case tok == json.Delim('{') && depth < maxSchemaDepth:
		return w.object(depth, described)
	case tok == json.Delim('[') && depth < maxSchemaDepth:
		for w.dec.More() {
			if !w.value(depth+1, described) {
				return false
			}
		}
		_, err = w.dec.Token()
		return err == nil
	default:
		return w.skip(tok)
	}
}

func (w *schemaWalker) object(depth int, described bool) bool {
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return false
		}
		ok := true
		switch key {
		case "properties", "patternProperties":
			ok = w.properties(depth+1, true)
		case "$defs", "definitions":
			ok = w.properties(depth+1, false)
		case "items", "anyOf", "oneOf", "allOf", "additionalProperties", "prefixItems", "then", "else":
			ok = w.value(depth+1, false)
		case "description":
			var tok json.Token
			if tok, err = w.dec.Token(); err != nil {
				return false
			}
			if s, isText := tok.(string); isText {
				if described && w.names <= maxParameters {
					w.text(cut(s, maxParamText))
				}
			} else {
				ok = w.skip(tok)
			}
		default:
			var tok json.Token
			if tok, err = w.dec.Token(); err != nil {
				return false
			}
			ok = w.skip(tok)
		}
		if !ok {
			return false
		}
	}
	_, err := w.dec.Token()
	return err == nil
}

// properties reads an object of schemas; named says whether its keys are parameters.
func (w *schemaWalker) properties(depth int, named bool) bool {
	tok, err := w.dec.Token()
	if err != nil {
		return false
	}
	if tok != json.Delim('{') {
		return w.skip(tok)
	}
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return false
		}
		if s, isText := key.(string); isText && named {
			if w.names++; w.names <= maxParameters {
				w.name(cut(s, maxParamText))
			}
		}
		if !w.value(depth, named) {
			return false
		}
	}
	_, err = w.dec.Token()
	return err == nil
}

// skip reads the rest of the value that began with tok.
func (w *schemaWalker) skip(tok json.Token) bool {
	for depth := 0; ; {
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return true
		}
		var err error
		if tok, err = w.dec.Token(); err != nil {
			return false
		}
	}
}
