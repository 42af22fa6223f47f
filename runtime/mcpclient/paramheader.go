package mcpclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/hermesd/hermesd/internal/rawjson"
)

// Since protocol 2026-07-28 a tool's schema may ask, by x-mcp-header, for an argument to be repeated in an HTTP header so
// that intermediaries can route by it.

const (
	paramHeaderPrefix = "Mcp-Param-"
	// maxSafeInteger is the largest integer that every JSON reader keeps.
	maxSafeInteger = 1<<53 - 1
)

// paramHeader is an argument, by its path of properties, and the header that repeats it.
type paramHeader struct {
	path []string
	name string
}

// paramHeaders finds the headers that a schema asks for. They must be unique, valid header names, on plain types.
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	if !bytes.Contains(schema, []byte(`"x-mcp-header"`)) {
		return nil, nil
	}
	var found []paramHeader
	seen := map[string]bool{}
	var walk func(schema json.RawMessage, path []string) error
	walk = func(schema json.RawMessage, path []string) error {
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(schema, &s); err != nil {
			return fmt.Errorf("properties cannot be read: %w", err)
		}
		for name, raw := range s.Properties {
			var p struct {
				Type   any             `json:"type"`
				Header json.RawMessage `json:"x-mcp-header"`
			}
			if json.Unmarshal(raw, &p) != nil {
				continue // a boolean schema
			}
			here := append(path[:len(path):len(path)], name)
			if p.Header != nil {
				header, _ := rawjson.String(p.Header)
				key := strings.ToLower(header)
				switch {
				case p.Type != "string" && p.Type != "integer" && p.Type != "boolean":
					return fmt.Errorf("x-mcp-header of %q is on a type that no header can hold", name)
				case !isToken(header) || seen[key]:
					return fmt.Errorf("x-mcp-header of %q is no header name or not unique", name)
				}
				seen[key] = true
				found = append(found, paramHeader{path: here, name: paramHeaderPrefix + header})
			}
			if err := walk(raw, here); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk(schema, nil)
}

// isToken reports whether s is a header name (RFC 9110, token).
func isToken(s string) bool {
	for i := range len(s) {
		b := s[i]
		alnum := b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(b)) {
			return false
		}
	}
	return s != ""
}

// headersFor reads the headers' values from a call's arguments.
func headersFor(wanted []paramHeader, args json.RawMessage) map[string]string {
	headers := map[string]string{}
	for _, w := range wanted {
		if text, ok := headerText(lookup(args, w.path)); ok {
			headers[w.name] = text
		}
	}
	return headers
}

func lookup(args json.RawMessage, path []string) json.RawMessage {
	for _, part := range path {
		var next json.RawMessage
		rawjson.Members(args, func(key string, value json.RawMessage) {
			if key == part {
				next = value
			}
		})
		args = next
	}
	return args
}

// headerText writes a plain value as a header, in base64 where a header could not hold it as it is.
func headerText(raw json.RawMessage) (string, bool) {
	if rawjson.IsNull(raw) {
		return "", false
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v != float64(int64(v)) || v > maxSafeInteger || v < -maxSafeInteger {
			return "", false
		}
		return strconv.FormatInt(int64(v), 10), true
	case string:
		if plainHeader(v) {
			return v, true
		}
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(v)) + "?=", true
	default:
		return "", false
	}
}

func plainHeader(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7E {
			return false
		}
	}
	return strings.TrimSpace(s) == s && !strings.HasPrefix(s, "=?base64?")
}
