package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
)

// The base is the bleve index of one corpus. It is built once, from fixed batches, and never changed: documents that
// come later are the overlay's. Its one field holds the terms of a document, each as often as it weighs.
type base struct {
	docs   []*entry // the corpus it was built from
	vocab  *vocabulary
	names  nameIndex
	index  index.Index
	reader index.IndexReader
	queue  *index.AnalysisQueue
	place  []uint32 // number in the index -> place in docs

	users atomic.Int64 // searches at work, and one for the engine while the base is current
}

const (
	wordsField = "words"
	batchSize  = 4096 // documents of one batch; fixed, so that the index is always the same
	analysers  = 2    // goroutines that bleve may use to take documents in
	maxRepeat  = 15   // occurrences of one term in the index
)

// repeats is how often a term is put into the index for a document: its weighted frequency, at least once.
func repeats(p *params, freq packed) int {
	sum := float32(0)
	for f, w := range p.weight {
		sum += w * float32(freq.get(f))
	}
	return max(1, min(int(math.Round(float64(sum)*1.5)), maxRepeat))
}

// prepared hands ready terms to bleve in place of an analyzer.
type prepared struct {
	entry  *entry
	vocab  *vocabulary
	params *params
}

// Analyze implements bleve's analysis.Analyzer.
func (p prepared) Analyze([]byte) analysis.TokenStream {
	var stream analysis.TokenStream
	for _, t := range p.entry.terms {
		tok := &analysis.Token{Term: []byte(p.vocab.term(t.term)), Position: 1}
		for range repeats(p.params, t.freq) {
			stream = append(stream, tok)
		}
	}
	return stream
}

func bleveDocument(place int, p prepared) *document.Document {
	var id [4]byte
	binary.BigEndian.PutUint32(id[:], uint32(place))
	d := document.NewDocument(string(id[:]))
	d.AddField(document.NewTextFieldCustom(wordsField, nil, nil, index.IndexField, p))
	return d
}

// buildMemory makes a base that lives in memory.
func buildMemory(ctx context.Context, c *Corpus) (_ *base, err error) {
	b := &base{docs: c.docs, vocab: c.vocab, names: newNameIndex(c.docs)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.release())
		}
	}()
	if err := b.open(""); err != nil {
		return nil, err
	}
	batch := index.NewBatch()
	for i, e := range c.docs {
		batch.Update(bleveDocument(i, prepared{e, c.vocab, c.params}))
		if len(batch.IndexOps) == batchSize || i == len(c.docs)-1 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := b.index.Batch(batch); err != nil {
				return nil, fmt.Errorf("index documents: %w", err)
			}
			batch.Reset()
		}
	}
	return b, b.read()
}

// open opens the index at path, or an empty one in memory for "".
func (b *base) open(path string) error {
	b.users.Store(1)
	b.queue = index.NewAnalysisQueue(analysers)
	config := map[string]any{"path": path}
	if path != "" {
		config["read_only"] = true
	}
	idx, err := scorch.NewScorch(scorch.Name, config, b.queue)
	if err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	if err := idx.Open(); err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	b.index = idx
	return nil
}

// start opens the finished index at path for reading; on failure nothing is left open.
func (b *base) start(path string) error {
	err := b.open(path)
	if err == nil {
		err = b.read()
	}
	if err != nil {
		return errors.Join(err, b.release())
	}
	return nil
}

// read takes the reader that all searches share and learns the places of its documents, unless they are known.
func (b *base) read() error {
	reader, err := b.index.Reader()
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	b.reader = reader
	if b.place != nil {
		return nil
	}
	b.place = make([]uint32, len(b.docs))
	var buf index.IndexInternalID
	for i := range b.place {
		buf = index.NewIndexInternalID(buf, uint64(i))
		id, err := reader.ExternalID(buf)
		if err != nil {
			return fmt.Errorf("find the place of document %d of the index: %w", i, err)
		}
		if len(id) != 4 {
			return fmt.Errorf("document %d of the index has the strange name %q", i, id)
		}
		b.place[i] = binary.BigEndian.Uint32([]byte(id))
	}
	return nil
}

// acquire keeps the base open until release; it reports false if it is closed already.
func (b *base) acquire() bool {
	for {
		n := b.users.Load()
		if n == 0 {
			return false
		}
		if b.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release undoes acquire; the last one closes.
func (b *base) release() error {
	if b.users.Add(-1) > 0 {
		return nil
	}
	var errs []error
	if b.reader != nil {
		errs = append(errs, b.reader.Close())
	}
	if b.index != nil {
		errs = append(errs, b.index.Close())
	}
	if b.queue != nil {
		b.queue.Close()
	}
	return errors.Join(errs...)
}
