package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// clean removes from a third party's result what could speak to an agent in the dark or in the protocol's own name:
// Unicode's tag characters, which are invisible, and reserved _meta keys. It returns r itself if there are none.
func clean(r *tool.Result) *tool.Result {
	c := *r
	changed := false
	take := func(to *json.RawMessage, from []byte, is bool) {
		if is {
			*to, changed = from, true
		}
	}
	copied := false
	for i, block := range r.Content {
		out, is := withoutTags(block)
		out, meta := withoutReserved(out, blockDepth)
		if !is && !meta {
			continue
		}
		if !copied {
			c.Content, copied, changed = append([]tool.Content(nil), r.Content...), true, true
		}
		c.Content[i] = out
	}
	structured, is := withoutTags(r.Structured)
	take(&c.Structured, structured, is)
	meta, is := withoutTags(r.Meta)
	meta, reserved := pruneMeta(meta)
	take(&c.Meta, meta, is || reserved)
	if !changed {
		return r
	}
	return &c
}

// cleanError removes the tag characters from what an agent reads of a third party's error.
func cleanError(err *tool.Error) {
	err.Message, err.Pointer = untagged(err.Message), untagged(err.Pointer)
	if len(err.Extra) > 0 {
		err.Extra = rewritten(err.Extra, func(raw []byte) []byte {
			out, _ := withoutTags(raw)
			return out
		})
	}
}

// cleanHost removes the tag characters from what a third party tells and asks while its call runs, and the reserved _meta
// keys from what it asks.
func cleanHost(h *provider.Host) *provider.Host {
	c := *h
	if h.OnProgress != nil {
		c.OnProgress = func(step tool.Progress) {
			step.Note = untagged(step.Note)
			h.OnProgress(step)
		}
	}
	if h.OnLog != nil {
		c.OnLog = func(r tool.LogRecord) {
			r.Logger = untagged(r.Logger)
			r.Data, _ = withoutTags(r.Data)
			h.OnLog(r)
		}
	}
	if h.OnAsk != nil {
		c.OnAsk = func(ctx context.Context, q provider.Question) (provider.Answer, error) {
			q.Message = untagged(q.Message)
			q.Schema, _ = withoutTags(q.Schema)
			return h.OnAsk(ctx, q)
		}
	}
	if h.OnSample != nil {
		c.OnSample = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			return h.OnSample(ctx, cleanParams(params))
		}
	}
	if h.OnInputs != nil {
		c.OnInputs = func(ctx context.Context, requests map[string]provider.Input) (map[string]json.RawMessage, error) {
			cleaned := make(map[string]provider.Input, len(requests))
			for id, in := range requests {
				in.Params = cleanParams(in.Params)
				cleaned[id] = in
			}
			return h.OnInputs(ctx, cleaned)
		}
	}
	return &c
}

func cleanParams(raw []byte) []byte {
	raw, _ = withoutTags(raw)
	raw, _ = withoutReserved(raw, 0)
	return raw
}

// untagged is text without tag characters.
func untagged(s string) string {
	if !strings.Contains(s, tagLead) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r >= 0xE0000 && r <= 0xE007F {
			return -1
		}
		return r
	}, s)
}

// The tag characters U+E0000 to U+E007F: F3 A0 80 80 to F3 A0 81 BF in UTF-8, \uDB40\uDC00 to \uDB40\uDC7F as JSON escapes.
const (
	tagLead   = "\xf3\xa0"
	tagUTF8   = 4
	tagEscape = len(`\udb40\udc00`)
)

// withoutTags cuts the tag characters out of JSON, however they are written, and reports whether there were any. All other
// bytes stay, and so the JSON stays valid. It looks at the end of what it keeps, so that halves around a tag character do
// not become another.
func withoutTags(raw []byte) ([]byte, bool) {
	if !bytes.Contains(raw, []byte(tagLead)) && !mayEscapeTags(raw) {
		return raw, false
	}
	out := make([]byte, 0, len(raw))
	for _, b := range raw {
		out = append(out, b)
		out = out[:len(out)-tagAtEnd(out)]
	}
	return out, len(out) != len(raw)
}

func mayEscapeTags(raw []byte) bool {
	for {
		i := bytes.Index(raw, []byte(`\u`))
		if i < 0 {
			return false
		}
		raw = raw[i+2:]
		if len(raw) >= 4 && strings.EqualFold(string(raw[:4]), "db40") {
			return true
		}
	}
}

// tagAtEnd is the length of the tag character with which b ends, 0 if it ends with none.
func tagAtEnd(b []byte) int {
	if n := len(b) - tagUTF8; n >= 0 && string(b[n:n+2]) == tagLead && (b[n+2] == 0x80 || b[n+2] == 0x81) && b[n+3]&0xc0 == 0x80 {
		return tagUTF8
	}
	n := len(b) - tagEscape
	if n < 0 || b[n] != '\\' || !strings.EqualFold(string(b[n:n+10]), `\udb40\udc`) || b[n+10] < '0' || b[n+10] > '7' || !isHex(b[n+11]) {
		return 0
	}
	before := len(b[:n]) - len(bytes.TrimRight(b[:n], `\`))
	if before%2 == 1 { // the first backslash is itself escaped: this is text about an escape
		return 0
	}
	return tagEscape
}

func isHex(b byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", b) >= 0 }

// blockDepth is how deep a content block holds _meta of its own: in itself and in an embedded resource.
const blockDepth = 1

// withoutReserved removes reserved keys from the _meta of a block and of the resource in it.
func withoutReserved(raw []byte, depth int) ([]byte, bool) {
	// A key may be written with escapes; then the block is looked at more closely for nothing.
	if !bytes.Contains(raw, []byte("_meta")) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, false
	}
	return edit(raw, func(key string, value []byte) ([]byte, bool) {
		switch {
		case key == "_meta":
			return pruneMeta(value)
		case key == "resource" && depth > 0:
			return withoutReserved(value, depth-1)
		}
		return value, false
	})
}

// pruneMeta removes reserved keys from a _meta object.
func pruneMeta(raw []byte) ([]byte, bool) {
	if len(raw) == 0 {
		return raw, false
	}
	return edit(raw, func(key string, value []byte) ([]byte, bool) {
		if reserved(key) {
			return nil, true
		}
		return value, false
	})
}

// reserved reports whether a _meta key belongs to the protocol or to hermesd. MCP (2025-11-25, General fields: _meta)
// reserves prefixes whose second label is "modelcontextprotocol" or "mcp"; earlier versions those in which one of them
// precedes the last label.
func reserved(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	labels := strings.Split(prefix, ".")
	n := len(labels)
	return prefix == "hermesd" || owned(labels[0]) || n > 1 && (owned(labels[1]) || owned(labels[n-2]))
}

func owned(label string) bool {
	return strings.EqualFold(label, "mcp") || strings.EqualFold(label, "modelcontextprotocol")
}

// edit passes the members of a JSON object to change, which returns a member's new value, or nil to drop it, and whether
// that is a change. If there was none, edit returns raw itself; else the members that stay keep their bytes and order.
func edit(raw []byte, change func(key string, value []byte) ([]byte, bool)) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return raw, false
	}
	out, changed := []byte{'{'}, false
	for d.More() {
		start := d.InputOffset()
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return raw, false
		}
		name := bytes.TrimLeft(raw[start:d.InputOffset()], ", \t\r\n")
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return raw, false
		}
		kept, is := change(key, value)
		changed = changed || is
		if kept == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), kept...)
	}
	if !changed {
		return raw, false
	}
	return append(out, '}'), true
}
