package search

import (
	"log/slog"
	"sync"
)

// Corpus is an immutable snapshot of all tools, in the order of their names.
type Corpus struct {
	docs    []*entry
	vocab   *vocabulary
	lex     *lexicon
	params  *params
	log     *slog.Logger
	pool    *sync.Pool // of *scratch, the engine's
	all     *Scope
	base    *base    // nil until one has been built
	ordinal []int32  // document of the base -> its place in docs, or -1 when it changed or went
	removed int      // documents of the base that changed or went
	overlay []uint32 // places in docs that the base does not hold
}

// Len returns the number of tools.
func (c *Corpus) Len() int { return len(c.docs) }
