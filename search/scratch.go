package search

// scratch is the memory of one search, reused by later ones.
type scratch struct {
	wanted  bitset            // terms of the query
	slotOf  map[uint32]uint16 // term -> slot
	matches []match
	cands   []candidate
	order   []*candidate
	satur   []float32 // saturated information by slot, of one candidate
	hit     []bool    // by slot, of one candidate
	found   candidateSet
}

func newScratch() any { return &scratch{slotOf: map[uint32]uint16{}} }

// reset makes the scratch ready for a query with that many terms and slots.
func (s *scratch) reset(terms, slots int) {
	if len(s.wanted) < (terms+63)/64 {
		s.wanted = newBitset(terms + terms/8)
	}
	if len(s.satur) < slots {
		s.satur, s.hit = make([]float32, slots), make([]bool, slots)
	}
}

// done forgets the query, and with it the documents, which may belong to a corpus that is gone.
func (s *scratch) done() {
	clear(s.cands)
	clear(s.order)
	clear(s.slotOf)
	s.matches, s.cands, s.order = s.matches[:0], s.cands[:0], s.order[:0]
}
