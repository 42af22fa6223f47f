package search

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// DefaultLargeFrom is the number of tools from which on the base index lives on disk, if there is a directory for it.
const DefaultLargeFrom = 20_000

// Options configure an Engine. The zero value works.
type Options struct {
	// Dir is where the index of a large catalog is kept, so that a restart reopens it; "" keeps everything in memory.
	// The engine owns the files in it whose names begin with "search-".
	Dir string

	// LargeFrom is the number of tools from which on the base lives in Dir; default 20,000.
	LargeFrom int

	// Synonyms adds to the built-in lexicon: each key, a word or a short phrase, is also found by its values.
	Synonyms map[string][]string

	// Logger receives trouble with the index on disk, which never fails a search; default none.
	Logger *slog.Logger
}

// Engine keeps the current corpus and its index. Its methods are safe for concurrent use.
type Engine struct {
	opts    Options
	log     *slog.Logger
	lex     *lexicon
	params  params
	current atomic.Pointer[Corpus]
	pool    sync.Pool // of *scratch

	mu      sync.Mutex // held by Update and by the swap of a base, never by a search
	done    *sync.Cond // a build has ended
	builder bool       // a build is running
	closed  bool
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// New returns an engine with an empty corpus. It fails only for synonyms that are no words.
func New(opts *Options) (*Engine, error) {
	if opts == nil {
		opts = &Options{}
	}
	lex, err := loadLexicon(opts.Synonyms)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: *opts, lex: lex, params: ranking, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))}
	e.opts.LargeFrom = cmp.Or(opts.LargeFrom, DefaultLargeFrom)
	e.done = sync.NewCond(&e.mu)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.pool.New = func() any { return &scratch{} }
	e.current.Store(e.newCorpus(nil, newVocabulary(), nil))
	return e, nil
}

// Corpus returns the current snapshot.
func (e *Engine) Corpus() *Corpus { return e.current.Load() }

// Update makes docs the whole corpus. The change is visible to the next search when it returns; the base index follows
// in the background. Of two documents with one name the later counts.
func (e *Engine) Update(docs []Document) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	old := e.current.Load()
	entries, vocab := e.prepare(docs, old)
	e.current.Store(e.newCorpus(entries, vocab, old.base))
	e.build()
}

// prepare makes the entries of the documents, in the order of their names. Those of old documents are kept.
func (e *Engine) prepare(docs []Document, old *Corpus) ([]*entry, *vocabulary) {
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(docs[a].Name, docs[b].Name) })
	vocab := old.vocab
	if len(old.docs) == 0 {
		vocab = newVocabulary()
	} else {
		vocab = vocab.flat().extend()
	}
	p := newPreparer(e.lex, vocab)
	entries := make([]*entry, 0, len(docs))
	at := 0
	for i, o := range order {
		d := &docs[o]
		if i+1 < len(order) && docs[order[i+1]].Name == d.Name {
			continue
		}
		for at < len(old.docs) && old.docs[at].name < d.Name {
			at++
		}
		if at < len(old.docs) && old.docs[at].name == d.Name && old.docs[at].hash == d.digest() {
			entries = append(entries, old.docs[at])
			continue
		}
		entries = append(entries, p.prepare(d))
	}
	if len(vocab.terms) == 0 && vocab.parent != nil {
		vocab = vocab.parent
	}
	return entries, vocab
}

// newCorpus puts documents and base together.
func (e *Engine) newCorpus(docs []*entry, vocab *vocabulary, b *base) *Corpus {
	c := &Corpus{docs: docs, vocab: vocab, lex: e.lex, params: &e.params, log: e.log, pool: &e.pool, base: b}
	if b != nil {
		c.ordinal = make([]int32, len(b.docs))
		at := 0
		for i, d := range docs {
			for at < len(b.docs) && b.docs[at].name < d.name {
				c.ordinal[at] = -1
				at++
			}
			if at < len(b.docs) && b.docs[at].name == d.name {
				if b.docs[at] == d {
					c.ordinal[at] = int32(i)
					at++
					continue
				}
				c.ordinal[at] = -1
				at++
			}
			c.overlay = append(c.overlay, uint32(i))
		}
		for ; at < len(b.docs); at++ {
			c.ordinal[at] = -1
		}
	}
	c.all = newScope(c, nil)
	return c
}

// build starts a build of the current corpus unless one is running or none is needed. The caller holds mu.
func (e *Engine) build() {
	if e.builder || e.closed || !e.needsBuild() {
		return
	}
	e.builder = true
	e.work.Go(func() {
		for {
			c := e.current.Load()
			b, err := buildMemory(e.ctx, c)
			if !e.swap(b, err) {
				return
			}
		}
	})
}

// needsBuild reports whether the base is another corpus's than the current one.
func (e *Engine) needsBuild() bool {
	c := e.current.Load()
	if len(c.docs) <= linearLimit {
		return c.base != nil
	}
	return c.base == nil || len(c.overlay) > 0 || len(c.base.docs) != len(c.docs)
}

// swap puts a new base under the current corpus and reports whether another build is needed.
func (e *Engine) swap(b *base, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.current.Load()
	switch {
	case err != nil:
		if e.ctx.Err() == nil {
			e.log.Error("build the search index; searches go on without it", "err", err)
		}
	case e.closed:
		e.closeBase(b)
	default:
		e.current.Store(e.newCorpus(old.docs, old.vocab, b))
		if old.base != nil {
			e.closeBase(old.base)
		}
	}
	e.builder = err == nil && !e.closed && e.needsBuild()
	e.done.Broadcast()
	return e.builder
}

func (e *Engine) closeBase(b *base) {
	if err := b.release(); err != nil {
		e.log.Warn("close the search index", "err", err)
	}
}

// Ready waits until the base holds the current corpus and no build is running.
func (e *Engine) Ready(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.done.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.builder && ctx.Err() == nil {
		e.done.Wait()
	}
	return ctx.Err()
}

// Close ends the background work and waits for it. Searches on snapshots still work, without the index.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.work.Wait()
	if b := e.current.Load().base; first && b != nil {
		return b.release()
	}
	return nil
}

func (c *Corpus) borrow() *scratch    { return c.pool.Get().(*scratch) }
func (c *Corpus) giveBack(s *scratch) { c.pool.Put(s) }

// reset makes the scratch ready for a query with that many terms and slots.
func (s *scratch) reset(terms, slots int) {
	if len(s.wanted) < (terms+63)/64 {
		s.wanted = newBitset(terms + terms/8)
	}
	s.matches, s.cands = s.matches[:0], s.cands[:0]
	if len(s.satur) < slots {
		s.satur, s.hit = make([]float32, slots), make([]bool, slots)
	}
}
