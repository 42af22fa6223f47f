package store

// Bound sets what is remembered of each provider, for tests.
func (l *Lock) Bound(tools, bytes int) { l.most = room{tools, bytes} }
