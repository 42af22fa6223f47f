package store

// The bounds of what is remembered of one provider: whoever changes the names of his tools with every list would otherwise
// grow the lock file until nobody can read it, and nobody is trusted.
const (
	maxKnownTools = 20_000    // twice the longest list
	maxKnownBytes = 128 << 20 // of definitions, twice those of the longest list
)

// room is what may still be remembered of a provider.
type room struct{ tools, bytes int }

// room is looked at once for a whole list. The lock's mutex is held.
func (k *Keeper) room() *room {
	r := k.lock.most
	if e, _ := k.lock.file.of(k.options.Name); e != nil {
		r.tools -= len(e.Tools)
	}
	for _, list := range []map[string]*seen{k.record.Accepted, k.record.Pending} {
		for _, s := range list {
			r.bytes -= s.size()
		}
	}
	return &r
}

// forBytes takes the room for a definition, if there is any.
func (r *room) forBytes(s *seen) bool {
	n := s.size()
	if r.bytes < n {
		return false
	}
	r.bytes -= n
	return true
}

// forTool takes the room for a tool that was never seen.
func (r *room) forTool(s *seen) bool {
	if r.tools < 1 || !r.forBytes(s) {
		return false
	}
	r.tools--
	return true
}

// size is about how many bytes a definition takes.
func (s *seen) size() int {
	d := s.Definition
	n := len(d.Name) + len(d.Toolset) + len(d.Title) + len(d.Description) + len(d.InputSchema) + len(d.OutputSchema)
	for _, e := range d.Examples {
		n += len(e)
	}
	for _, list := range [][]string{d.Keywords, d.RequiresEnv} {
		for _, word := range list {
			n += len(word)
		}
	}
	return n
}
