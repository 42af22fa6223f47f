package store

// Bound sets what is remembered of each provider, for tests.
func (l *Lock) Bound(tools, bytes int) { l.most = room{tools, bytes} }

// Imitates judges a name beside other providers' tools, by their labels.
func Imitates(own, full string, others map[string][]string) []Finding {
	seen := map[string]looks{}
	for label, names := range others {
		seen[label] = looksOf(names...)
	}
	return imitates(own, full, seen)
}
