package store

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Finding is something in a definition that may be meant to lead a model astray. It is for a human to judge: it never
// refuses a tool by itself.
type Finding struct {
	Kind   string `json:"kind"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// The kinds of findings.
const (
	FindInvisible   = "invisible characters"
	FindDirection   = "changed writing direction"
	FindInstruction = "instruction to the model"
	FindHidden      = "text out of sight"
	FindImitation   = "imitated name"
)

// maxFindings bounds the findings about one definition.
const maxFindings = 32

// instructions are what descriptions of tools have no reason to say. Each has been seen in an attack, or is its plain
// variation.
var instructions = compile(
	`(ignore|disregard|forget|override)\s+(all\s+|any\s+|the\s+|your\s+)*(previous|prior|above|earlier|other|system)\s+(instruction|prompt|rule|message|tool)`,
	`(do\s+not|don't|never)\s+(tell|inform|mention|reveal|show|notify|ask)\b.{0,40}\b(user|human|anyone|operator)`,
	`without\s+(telling|informing|notifying|asking|the\s+knowledge\s+of)\s+(the\s+)?(user|human|operator)`,
	`</?\s*(important|system|secret|hidden|instructions?|assistant|admin)\s*>`,
	`(before|after|when|whenever)\s+(using|calling|invoking|running)\s+(this|any|another|every|other|the)\b.{0,30}\btools?\b.{0,80}\b(read|call|use|send|run|pass|first)\b`,
	`(you|the\s+(assistant|model|agent|ai))\s+(must|should|need\s+to|have\s+to)\s+(always\s+|first\s+|also\s+)*(call|read|send|use|include|pass|execute|forward)\b`,
	`\b(system\s+prompt|conversation\s+history|chat\s+history|previous\s+messages)\b`,
	`(\.ssh|id_rsa|id_ed25519|\.env\b|\.aws|/etc/passwd|mcp\.json|credentials?\s+file)`,
	`\b(instead\s+of|rather\s+than|in\s+place\s+of)\s+(using\s+|calling\s+)?(the\s+|any\s+)?(other|built-?in|native|\S+_\S+)\s*(tools?)?\b`,
	`\b(always|only)\s+use\s+this\s+tool\b`,
)

func compile(patterns ...string) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		list[i] = regexp.MustCompile(`(?is)` + p)
	}
	return list
}

// outOfSight is so much empty space that what follows is not seen in a list.
var outOfSight = regexp.MustCompile(`[ \t]{80,}\S|(\s*\n){12,}\s*\S`)

// Scan looks for what poisons a model in all texts of a definition.
func Scan(d *Definition) ([]Finding, error) {
	texts, err := texts(d)
	if err != nil {
		return nil, err
	}
	var list []Finding
	for _, t := range texts {
		list = append(list, scanText(t.field, t.text)...)
		if len(list) >= maxFindings {
			return list[:maxFindings], nil
		}
	}
	return list, nil
}

type text struct{ field, text string }

// texts are all strings of a definition, keys of its schemas included.
func texts(d *Definition) ([]text, error) {
	raw, err := marshal(d)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	var list []text
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case string:
			list = append(list, text{path, v})
		case []any:
			for n, one := range v {
				walk(fmt.Sprintf("%s.%d", path, n), one)
			}
		case map[string]any:
			for key, one := range v {
				if path != "" {
					list = append(list, text{path, key})
				}
				walk(strings.TrimPrefix(path+"."+key, "."), one)
			}
		}
	}
	walk("", value)
	slices.SortStableFunc(list, func(a, b text) int { return strings.Compare(a.field, b.field) })
	return list, nil
}

func scanText(field, s string) []Finding {
	var list []Finding
	add := func(kind, detail string) { list = append(list, Finding{kind, field, detail}) }
	invisible, direction := map[rune]bool{}, map[rune]bool{}
	for _, r := range s {
		switch {
		case isDirection(r):
			direction[r] = true
		case isInvisible(r):
			invisible[r] = true
		}
	}
	if len(invisible) > 0 {
		add(FindInvisible, codePoints(invisible)+hiddenTags(s))
	}
	if len(direction) > 0 {
		add(FindDirection, codePoints(direction))
	}
	if at := outOfSight.FindStringIndex(s); at != nil {
		add(FindHidden, "after much empty space: "+excerpt(s, at[1]-1, len(s)))
	}
	folded := norm.NFKC.String(strings.Map(visible, s))
	for _, re := range instructions {
		if at := re.FindStringIndex(folded); at != nil {
			add(FindInstruction, excerpt(folded, at[0], at[1]))
		}
	}
	return list
}

// isDirection: the controls that make text read in another order than it is written (Unicode UAX #9).
func isDirection(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x200E || r == 0x200F || r == 0x061C
}

// isInvisible: what has no shape of its own: tags, variation selectors beyond the common ones, joiners, fillers, controls.
func isInvisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r == 0x200D /* joins emoji */ || r == 0xFE0F || r == 0xFE0E:
		return false
	case r >= 0xE0000 && r <= 0xE0FFF, r >= 0xFE00 && r <= 0xFE0D, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x034F, r == 0x17B4, r == 0x17B5:
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Co, r)
}

// hiddenTags is the ASCII text that Unicode's tag characters spell, if they do.
func hiddenTags(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0xE0020 && r <= 0xE007E {
			b.WriteRune(r - 0xE0000)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return ", which spell " + excerpt(b.String(), 0, b.Len())
}

func visible(r rune) rune {
	if isInvisible(r) || isDirection(r) {
		return -1
	}
	return r
}

func codePoints(set map[rune]bool) string {
	var list []string
	for r := range set {
		list = append(list, fmt.Sprintf("U+%04X", r))
	}
	slices.Sort(list)
	if len(list) > 8 {
		list = append(list[:8], fmt.Sprintf("and %d more", len(list)-8))
	}
	return strings.Join(list, " ")
}

// excerpt quotes a part of a text, bounded.
func excerpt(s string, from, to int) string {
	const most = 120
	part := s[from:to]
	if len(part) > most {
		part = strings.ToValidUTF8(part[:most], "") + "…"
	}
	return fmt.Sprintf("%q", part)
}

// looks are full names of tools by how they look. One is made anew for each list and never changed.
type looks map[string]tool.Name

func looksOf(names ...tool.Name) looks {
	l := make(looks, len(names))
	for _, name := range names {
		l[skeleton(name)] = name
	}
	return l
}

// imitates reports whether the name of a provider's tool could be taken for another provider's: it begins with the other's
// name, or looks like one of its tools' full names. others has the other providers' tools by their labels.
func imitates(own string, full tool.Name, others map[string]looks) []Finding {
	var list []Finding
	add := func(format string, args ...any) {
		list = append(list, Finding{FindImitation, "name", fmt.Sprintf(format, args...)})
	}
	if strings.ContainsFunc(own, func(r rune) bool { return r > unicode.MaxASCII }) {
		add("it has letters beyond ASCII, which may pass for others: %+q", own)
	}
	if name, ok := bridgeLooks[skeleton(own)]; ok {
		add("it looks like hermesd's own %s", name)
	}
	lower, look := strings.ToLower(own), skeleton(full)
	for label, tools := range others {
		if beginsWith(lower, label) {
			add("it begins with the name of the provider %q", label)
		}
		if other, ok := tools[look]; ok && other != full {
			add("it looks like %s of the provider %q", other, label)
		}
	}
	slices.SortFunc(list, func(a, b Finding) int { return strings.Compare(a.Detail, b.Detail) })
	return list
}

var bridgeLooks = looksOf("tool_search", "tool_describe", "tool_call")

// beginsWith reports whether a name is a label with a separator behind it, or with the prefix of an MCP server's tools.
func beginsWith(name, label string) bool {
	if len(label) <= 2 {
		return false
	}
	rest, ok := strings.CutPrefix(name, label)
	if ok && (strings.HasPrefix(rest, "_") || strings.HasPrefix(rest, "-")) {
		return true
	}
	rest, ok = strings.CutPrefix(name, "mcp__")
	if ok {
		rest, ok = strings.CutPrefix(rest, label)
	}
	return ok && strings.HasPrefix(rest, "__")
}

// skeleton folds what looks alike: case, separators, and digits that pass for letters.
func skeleton(name string) string {
	name = strings.ToLower(norm.NFKC.String(name))
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ', '/':
			return -1
		case '0':
			return 'o'
		case '1', 'i', '|':
			return 'l'
		case '5':
			return 's'
		}
		return r
	}, name)
}
