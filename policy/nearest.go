package policy

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// maxCompared bounds the names that are compared by edit distance, in bytes: the work grows with the product.
const maxCompared = 256

// Nearest returns at most n of the names that are few edits away from name, the closest first and equals in order of
// name. A name that differs in more than a third of its length is not near.
func Nearest(name string, names iter.Seq[string], n int) []string {
	name = strings.ToLower(name)
	if name == "" || len(name) > maxCompared {
		return nil
	}
	type near struct {
		name     string
		distance int
	}
	var found []near
	limit := max(1, len(name)/3)
	for candidate := range names {
		if d := Distance(name, strings.ToLower(candidate), limit); d <= limit {
			found = append(found, near{candidate, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var best []string
	for _, f := range found[:min(n, len(found))] {
		best = append(best, f.name)
	}
	return best
}

func nearestOf(name string, known map[string]bool) string {
	if best := Nearest(name, maps.Keys(known), 1); len(best) > 0 {
		return best[0]
	}
	return ""
}

// Distance is the number of insertions, deletions, replacements and swaps of neighbouring bytes between a and b, or
// limit + 1 if it is more than limit. Names longer than 256 bytes are never near.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit || len(b) > maxCompared {
		return limit + 1
	}
	// What both begin or end with changes nothing, and names of one server begin alike.
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return min(len(a)+len(b), limit+1)
	}
	var rows [3][maxCompared + 1]uint16
	before, last, row := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range last {
		last[j] = uint16(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint16(i)
		least := row[0]
		for j := 1; j <= len(b); j++ {
			change := uint16(1)
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if int(least) > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(int(last[len(b)]), limit+1)
}
