package search

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultLargeFrom is the number of tools from which on the base index lives on disk, if there is a directory for it.
const DefaultLargeFrom = 20_000

// maxDeadTerms is how many terms of documents that are gone the vocabulary may hold, besides as many as it began with,
// before everything is prepared anew.
const maxDeadTerms = 100_000

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

	mu       sync.Mutex    // held by Update and by the swap of a base, never by a search
	done     *sync.Cond    // signals that building has ended, or a build
	building bool          // a goroutine builds bases
	ended    time.Time     // of the last build
	took     time.Duration // by the last build
	terms    int           // size of the vocabulary when it was last made from nothing
	hurry    chan struct{} // somebody waits for the base
	closed   bool
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
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
	e.hurry = make(chan struct{}, 1)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.pool.New = newScratch
	e.current.Store(e.newCorpus(nil, newVocabulary(), nil))
	return e, nil
}

// Corpus returns the current snapshot.
func (e *Engine) Corpus() *Corpus { return e.current.Load() }

// Update makes docs the whole corpus. The change is visible to the next search when it returns; the base index follows
// in the background. Of two documents with one name the later counts; one without a name, or with a name of more than
// 512 bytes, is left out. Update never fails: trouble with an index on disk goes to the logger, and the index is then
// built in memory. After Close it does nothing.
func (e *Engine) Update(docs []Document) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	var hashes []uint64
	var hashing sync.WaitGroup
	hashing.Go(func() { hashes = digests(docs) })
	old := e.current.Load()
	if len(old.docs) == 0 && old.base == nil && e.onDisk(len(docs)) {
		if b := e.reopen(e.opts.Dir); b != nil {
			old = &Corpus{docs: b.docs, vocab: b.vocab, base: b}
			e.terms = b.vocab.size()
		}
	}
	if old.vocab.size() > 2*e.terms+maxDeadTerms {
		e.closeBase(old.base)
		old = &Corpus{vocab: newVocabulary()}
	}
	hashing.Wait()
	entries, vocab := e.prepare(docs, hashes, old)
	if old.vocab.size() == 0 {
		e.terms = vocab.size()
	}
	e.current.Store(e.newCorpus(entries, vocab, old.base))
	e.build()
}

// prepare makes the entries of the documents, in the order of their names. Those of old documents are kept.
func (e *Engine) prepare(docs []Document, hashes []uint64, old *Corpus) ([]*entry, *vocabulary) {
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := strings.Compare(docs[a].Name, docs[b].Name); c != 0 {
			return c
		}
		return a - b
	})
	vocab := newVocabulary()
	if old.vocab.size() > 0 {
		vocab = old.vocab.flat().extend()
	}
	entries := make([]*entry, 0, len(docs))
	var changed []unprepared
	at := 0
	for i, o := range order {
		d := &docs[o]
		if d.Name == "" || len(d.Name) > maxNameBytes || i+1 < len(order) && docs[order[i+1]].Name == d.Name {
			continue
		}
		for at < len(old.docs) && old.docs[at].name < d.Name {
			at++
		}
		if at < len(old.docs) && old.docs[at].name == d.Name && old.docs[at].hash == hashes[o] {
			entries = append(entries, old.docs[at].from(d))
			continue
		}
		changed = append(changed, unprepared{len(entries), d, hashes[o]})
		entries = append(entries, nil)
	}
	prepareAll(entries, changed, e.lex, vocab)
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
		c.removed = len(b.docs) - (len(docs) - len(c.overlay))
	}
	c.all = newScope(c, nil)
	return c
}

// Ready waits until the base holds the current corpus and no build is running, or a build has failed, which the logger
// has been told. Its error is ctx's.
func (e *Engine) Ready(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.done.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.building && ctx.Err() == nil {
		e.hasten()
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
