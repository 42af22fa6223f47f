// Package redact hides secrets that the daemon knows in texts that leave it: logs, records, errors.
package redact

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
)

// Mark stands in the place of a secret.
const Mark = "[secret]"

// minSecret is the shortest value that is masked, in bytes: shorter ones would also hit words that are none.
const minSecret = 6

// Masker knows secrets. Its zero value knows none. It may be used from any goroutine.
type Masker struct {
	replacer atomic.Pointer[strings.Replacer]
}

// Set makes values the secrets that are masked from now on, in the place of those before. Each is also found as it is
// written inside JSON text. Values of fewer than 6 bytes are left out.
func (m *Masker) Set(values []string) {
	var all []string
	for _, v := range values {
		if len(v) < minSecret {
			continue
		}
		all = append(all, v, inJSON(v, true), inJSON(v, false))
	}
	// The longest first: a secret that holds another is masked whole.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	all = slices.Compact(all)
	if len(all) == 0 {
		m.replacer.Store(nil)
		return
	}
	pairs := make([]string, 0, 2*len(all))
	for _, v := range all {
		pairs = append(pairs, v, Mark)
	}
	m.replacer.Store(strings.NewReplacer(pairs...))
}

// inJSON is a value as it stands between the quotes of JSON text, with or without the escapes for HTML.
func inJSON(v string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(v); err != nil {
		panic("redact: a string did not encode: " + err.Error())
	}
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

// Mask returns s with every secret replaced by [Mark].
func (m *Masker) Mask(s string) string {
	r := m.replacer.Load()
	if r == nil {
		return s
	}
	return r.Replace(s)
}
