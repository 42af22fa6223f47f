// Package redact hides secrets that the daemon knows in texts that leave it: logs, records, errors, shown configurations.
// It is against accidents, such as an error that quotes a request with its token, not against a program that knows a
// secret and disguises it.
package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark stands in the place of a secret. It is shorter than every secret that is masked within a text, so that masking only
// ever shrinks, and means itself in JSON, HCL and URLs.
const Mark = "***"

// MinLength is the length in bytes from which a secret is masked within texts. Shorter ones stand in half of all words;
// they are masked where they are a whole text.
const MinLength = 4

// Masker knows secrets. Its zero value and nil know none. It may be used from any goroutine.
type Masker struct {
	mu    sync.Mutex
	owned map[string][]string
	known atomic.Pointer[finder] // nil: no secrets
}

// New makes a masker that knows values.
func New(values ...string) *Masker {
	m := &Masker{}
	m.Set("", values...)
	return m
}

// Set makes values the secrets of an owner, in the place of those that the owner had. Owners only tell sets apart: all
// are masked. Empty values are left out.
func (m *Masker) Set(owner string, values ...string) {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Equal(m.owned[owner], values) {
		return
	}
	if m.owned == nil {
		m.owned = map[string][]string{}
	}
	m.owned[owner] = values
	var all []string
	for _, owned := range m.owned {
		all = append(all, owned...)
	}
	if len(all) == 0 {
		m.known.Store(nil)
		return
	}
	m.known.Store(newFinder(all))
}

// Mask returns s with every secret replaced by [Mark]: as it is, as it stands in JSON text (also in JSON within JSON) or in
// a quoted text of Go, with percent signs as in a URL, on one line, and each line of a secret of several lines. So is the
// beginning of a secret where the text was cut, at its end or before "…". Masking twice is masking once.
func (m *Masker) Mask(s string) string {
	if m == nil || s == "" {
		return s
	}
	f := m.known.Load()
	if f == nil {
		return s
	}
	return f.mask(s)
}

// forms are the texts to look for because of one secret.
func forms(secret string) []string {
	list := []string{secret}
	if strings.Contains(secret, " ") {
		list = append(list, strings.ReplaceAll(secret, " ", "+")) // as in a URL's query
	}
	list = append(list, strings.Join(strings.Fields(secret), " ")) // where a text has been made one line
	if !strings.ContainsAny(secret, "\r\n") {
		return list
	}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") { // which says that a PEM block begins or ends
			list = append(list, line)
		}
	}
	return list
}

func newFinder(secrets []string) *finder {
	texts := map[string]bool{}
	for _, s := range secrets {
		for _, form := range forms(s) {
			texts[form] = true
		}
	}
	f := &finder{short: map[string]bool{}, byHead: map[string][]string{}}
	for _, s := range secrets {
		if len(s) < MinLength {
			f.short[s] = true
		}
	}
	for text := range texts {
		if len(text) < MinLength {
			continue
		}
		f.byHead[text[:MinLength]] = append(f.byHead[text[:MinLength]], text)
		f.pairs.add(text[0], text[1])
	}
	return f
}

// Error is err with its text masked. What it wraps is found as before.
func (m *Masker) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	masked := m.Mask(text)
	if masked == text {
		return err
	}
	return &maskedError{masked, err}
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }
