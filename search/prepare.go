package search

import (
	"cmp"
	"slices"
	"sync"
)

// prepareTogether is the number of documents from which on they are prepared on two processors.
const prepareTogether = 1000

// unprepared is a document whose entry has to be made.
type unprepared struct {
	at   int // its place among the entries
	doc  *Document
	hash uint64
}

// prepareAll makes the entries of documents. Of many, the second half is prepared beside the first, with a vocabulary of its
// own whose terms are then added to vocab, so that the answer does not depend on which half was faster.
func prepareAll(entries []*entry, list []unprepared, lex *lexicon, vocab *vocabulary) {
	first, second := list, []unprepared(nil)
	if half := len(list) / 2; len(list) >= prepareTogether {
		first, second = list[:half], list[half:]
	}
	prepare := func(list []unprepared, v *vocabulary) {
		p := newPreparer(lex, v)
		for _, u := range list {
			entries[u.at] = p.prepare(u.doc, u.hash)
		}
	}
	own := newVocabulary()
	var beside sync.WaitGroup
	beside.Go(func() { prepare(second, own) })
	prepare(first, vocab)
	beside.Wait()

	number := make([]uint32, own.size())
	for id, term := range own.terms {
		number[id] = vocab.add(term)
	}
	for _, u := range second {
		entries[u.at].renumber(number)
	}
}

// renumber gives the terms of the entry new numbers.
func (e *entry) renumber(number []uint32) {
	for i, t := range e.terms {
		e.terms[i].term = number[t.term]
	}
	slices.SortFunc(e.terms, func(a, b posting) int { return cmp.Compare(a.term, b.term) })
	for _, words := range [][]uint32{e.nameSeq, e.srcSeq} {
		for i, t := range words {
			words[i] = number[t]
		}
	}
}
