package disclosure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxSummary is how much of a description a listing shows, in characters.
const maxSummary = 60

// level is how much a listing tells of one source.
type level int

const (
	counted   level = iota // its name and the number of its tools
	named                  // and every name
	described              // and what each does
)

const listingHead = "Deferred tools by source:\n"

// source is one source's part of a listing.
type source struct {
	label   string
	kind    tool.Source
	entries []*catalog.Entry
	level   level
	chars   [described + 1]int // of its text at each level
}

// list tells of the deferred tools within the settings' budget, and says in which tier that leaves the agent.
//
// It first takes descriptions away, from the largest source to the smallest, then names in the same order, until the
// rest fits. What room is left then goes back to the sources in the opposite order, so that small ones keep their full
// list beside a giant one. A source never tells more than a smaller one.
func list(deferred []*catalog.Entry, s *Settings) (string, int) {
	if len(deferred) == 0 {
		return "", TierNames
	}
	budget := s.listingBudget()
	sources := bySource(deferred, budget)
	largest := slices.SortedFunc(slices.Values(sources), func(a, b *source) int {
		return cmp.Or(cmp.Compare(len(b.entries), len(a.entries)), cmp.Compare(a.label, b.label), cmp.Compare(a.kind, b.kind))
	})
	total := len(listingHead)
	for _, src := range sources {
		if s.Listing == Off {
			src.level = counted
		}
		total += src.chars[src.level]
	}
	set := func(src *source, l level) {
		total += src.chars[l] - src.chars[src.level]
		src.level = l
	}
	for l := named; l >= counted; l-- {
		for _, src := range largest {
			if total > budget && src.level > l {
				set(src, l)
			}
		}
	}
	if total > budget {
		return countSome(sources, budget), TierSources
	}
	if s.Listing != Off {
		giveBack(largest, set, func(more int) bool { return total+more <= budget })
	}
	tier := TierNames
	var b strings.Builder
	b.WriteString(listingHead)
	for _, src := range sources {
		src.write(&b, src.level)
		if src.level == counted {
			tier = TierSources
		}
	}
	return b.String(), tier
}

// giveBack raises the sources again, the smallest first, as far as there is room.
func giveBack(largest []*source, set func(*source, level), fits func(more int) bool) {
	for l := named; l <= described; l++ {
		for _, src := range slices.Backward(largest) {
			if src.level >= l {
				continue
			}
			if !fits(src.chars[l] - src.chars[src.level]) {
				break
			}
			set(src, l)
		}
	}
}

// countSome lists as many sources as fit, and how many more there are.
func countSome(sources []*source, budget int) string {
	more := func(n int) string { return fmt.Sprintf("and %d more sources\n", n) }
	var b strings.Builder
	b.WriteString(listingHead)
	chars := len(listingHead)
	for i, src := range sources {
		rest := len(sources) - i - 1
		if chars+src.chars[counted]+len(more(rest)) > budget {
			b.WriteString(more(rest + 1))
			chars += len(more(rest + 1))
			break
		}
		src.write(&b, counted)
		chars += src.chars[counted]
	}
	if chars > budget {
		return ""
	}
	return b.String()
}

// bySource groups entries by their source, sorted by label.
func bySource(entries []*catalog.Entry, budget int) []*source {
	type key struct {
		label string
		kind  tool.Source
	}
	groups := map[key]*source{}
	var sources []*source
	for _, e := range entries {
		k := key{e.Identity().Name, e.Identity().Source}
		src := groups[k]
		if src == nil {
			src = &source{label: k.label, kind: k.kind, level: described}
			groups[k] = src
			sources = append(sources, src)
		}
		src.entries = append(src.entries, e)
	}
	for _, src := range sources {
		src.measure(budget)
	}
	slices.SortFunc(sources, func(a, b *source) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.kind, b.kind))
	})
	return sources
}

// measure counts the characters of the source's text at each level. A giant's descriptions are not even looked at: what
// has no room for the names has none for more.
func (s *source) measure(budget int) {
	for l := counted; l <= described; l++ {
		if l == described && s.chars[named] > budget {
			s.chars[described] = s.chars[named] + 1
			break
		}
		var b strings.Builder
		s.write(&b, l)
		s.chars[l] = utf8.RuneCountInString(b.String())
	}
}

func (s *source) write(b *strings.Builder, l level) {
	unit := "tools"
	if len(s.entries) == 1 {
		unit = "tool"
	}
	fmt.Fprintf(b, "%s (%d %s)", s.label, len(s.entries), unit)
	switch l {
	case counted:
		b.WriteByte('\n')
	case named:
		separator := ": "
		for _, e := range s.entries {
			b.WriteString(separator)
			b.WriteString(e.Definition.Name)
			separator = ", "
		}
		b.WriteByte('\n')
	case described:
		b.WriteString(":\n")
		for _, e := range s.entries {
			b.WriteString("- ")
			b.WriteString(e.Definition.Name)
			if summary := e.Summary(maxSummary); summary != "" {
				b.WriteString(": ")
				b.WriteString(summary)
			}
			b.WriteByte('\n')
		}
	}
}
