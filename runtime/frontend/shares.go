package frontend

// Shares divides a number of places between agents. An agent gets more while no fewer are free than it would have then: one
// alone takes half of all, and each that comes later finds room, however greedy those before it were; when all of them want
// as much as they can get, they end up with the same. The zero value has no places. Its owner guards it with a mutex.
type Shares struct {
	Max int64

	taken int64
	of    map[string]int64
}

// Fits reports whether an agent would get n places.
func (s *Shares) Fits(agent string, n int64) bool { return s.of[agent]+n <= s.Max-s.taken }

// Might reports whether an agent would get n places if it gave back all that it has.
func (s *Shares) Might(agent string, n int64) bool { return n <= s.Max-(s.taken-s.of[agent]) }

// Take gives an agent n places, or none and false if that is more than its share.
func (s *Shares) Take(agent string, n int64) bool {
	if !s.Fits(agent, n) {
		return false
	}
	if s.of == nil {
		s.of = map[string]int64{}
	}
	s.of[agent] += n
	s.taken += n
	return true
}

// Leave gives back n of the places that an agent took.
func (s *Shares) Leave(agent string, n int64) {
	s.taken -= n
	if s.of[agent] -= n; s.of[agent] == 0 {
		delete(s.of, agent)
	}
}
