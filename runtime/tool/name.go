package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxName is the longest full name, in bytes: the limit that OpenAI's and Anthropic's function calling share.
const MaxName = 64

// The bridge tools' reserved names. An operator may rename them for models that trip over one.
const (
	SearchName   Name = "tool_search"
	DescribeName Name = "tool_describe"
	CallName     Name = "tool_call"
)

// ValidName reports whether s can be a full name: 1 to 64 characters of [A-Za-z0-9_-].
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func nameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// FullName builds a tool's full name from its prefix parts and its own name, joined by "__". Characters outside
// [A-Za-z0-9_-] become "_". What is longer than [MaxName] keeps its beginning and ends in a hash of the whole, so that
// it is unique and the same after every restart; so does a name in which a character had to be replaced.
func FullName(parts ...string) Name {
	whole := strings.Join(parts, "__")
	clean := []byte(whole)
	changed := false
	for i, b := range clean {
		if !nameByte(b) {
			clean[i], changed = '_', true
		}
	}
	if !changed && len(clean) <= MaxName {
		return string(clean)
	}
	sum := sha256.Sum256([]byte(whole))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return string(clean[:min(len(clean), MaxName-len(suffix))]) + suffix
}

// Fold is a name without the differences that models make by accident: of case, of hyphens and spaces for underscores, and of
// blanks around it. Names that fold to the same are taken for each other.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == ' ':
			return '_'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, strings.TrimSpace(name))
}

// Flatten is a folded name with a single underscore in the place of each run of them, as some clients write MCP tools' names.
func Flatten(folded string) string {
	for strings.Contains(folded, "__") {
		folded = strings.ReplaceAll(folded, "__", "_")
	}
	return folded
}
