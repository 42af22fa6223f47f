package store

import (
	"encoding/json"
	"path/filepath"

	"github.com/hermesd/hermesd/internal/atomicfile"
)

const maxRecordBytes = 256 << 20

// record holds the definitions behind the digests of one provider: those that were accepted, to show a difference, and those
// that wait. It is a convenience: trust rests on the lock file alone, and a record that is gone costs the difference.
type record struct {
	Accepted map[string]*seen `json:"accepted,omitempty"` // by own name
	Pending  map[string]*seen `json:"pending,omitempty"`
	// PendingBinary is the digest of a binary that was refused ("" if none was).
	PendingBinary string `json:"pending_binary,omitempty"`
}

// seen is one definition with what was found in it.
type seen struct {
	Definition *Definition `json:"definition"`
	Digest     string      `json:"digest"`
	Findings   []Finding   `json:"findings,omitempty"`
}

func newRecord() *record {
	return &record{Accepted: map[string]*seen{}, Pending: map[string]*seen{}}
}

func recordPath(dir, provider string) string { return filepath.Join(dir, provider+".json") }

// readRecord reads what is known; what cannot be read is not known.
func readRecord(dir, provider string) (*record, error) {
	r := newRecord()
	content, err := readBounded(recordPath(dir, provider), maxRecordBytes)
	if err != nil || content == nil {
		return r, err
	}
	if err := json.Unmarshal(content, r); err != nil {
		return newRecord(), err
	}
	for _, list := range []map[string]*seen{r.Accepted, r.Pending} {
		for own, s := range list {
			if s == nil || s.Definition == nil || !s.genuine() {
				delete(list, own)
			}
		}
	}
	if !digestPattern.MatchString(r.PendingBinary) {
		r.PendingBinary = ""
	}
	if r.Accepted == nil {
		r.Accepted = map[string]*seen{}
	}
	if r.Pending == nil {
		r.Pending = map[string]*seen{}
	}
	return r, nil
}

// find returns the definition with a digest, whether it was accepted or waits; nil if it is not known.
func (r *record) find(own, digest string) *seen {
	for _, s := range []*seen{r.Accepted[own], r.Pending[own]} {
		if s != nil && s.Digest == digest {
			return s
		}
	}
	return nil
}

// genuine reports whether the definition is the one that the digest stands for.
func (s *seen) genuine() bool {
	digest, err := s.Definition.digest()
	return err == nil && digest == s.Digest
}

func (r *record) write(dir, provider string) error {
	content, err := marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(recordPath(dir, provider), content)
}
