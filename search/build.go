package search

import (
	"time"
)

// build starts the goroutine that builds bases, unless it runs or there is nothing to do. The caller holds mu.
func (e *Engine) build() {
	if e.building && !e.changedLittle() {
		e.hasten()
	}
	if e.building || e.closed || !e.needsBuild() {
		return
	}
	e.building = true
	e.work.Go(func() {
		for e.pause(); e.ctx.Err() == nil; e.pause() {
			start := time.Now()
			b, err := e.makeBase(e.current.Load())
			if !e.swap(b, err, time.Since(start)) {
				return
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.building = false
		e.done.Broadcast()
	})
}

// pauseFactor keeps builds of large catalogs, to which small changes keep coming, to a tenth of the time.
const pauseFactor = 10

// pause waits before the next build of a large catalog that has changed by less than one in a hundred, for whose few
// changes the overlay does as well. Ready, Close and a larger change end the pause.
func (e *Engine) pause() {
	e.mu.Lock()
	small := e.changedLittle()
	until := e.ended.Add(pauseFactor * e.took)
	e.mu.Unlock()
	if !small {
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.hurry:
	case <-e.ctx.Done():
	}
}

// changedLittle reports whether the current corpus is large and near to its base.
func (e *Engine) changedLittle() bool {
	c := e.current.Load()
	return c.base != nil && len(c.docs) >= e.opts.LargeFrom && 100*(len(c.overlay)+c.removed) < len(c.docs)
}

// hasten ends a pause.
func (e *Engine) hasten() {
	select {
	case e.hurry <- struct{}{}:
	default:
	}
}

// needsBuild reports whether the base is another corpus's than the current one.
func (e *Engine) needsBuild() bool {
	c := e.current.Load()
	if len(c.docs) <= linearLimit {
		return c.base != nil
	}
	return c.base == nil || len(c.overlay)+c.removed > 0
}

func (e *Engine) onDisk(docs int) bool { return e.opts.Dir != "" && docs >= e.opts.LargeFrom }

// makeBase builds the base of a corpus, on disk if it is large and in memory if it is not or the disk fails. A corpus
// that needs none has a nil base.
func (e *Engine) makeBase(c *Corpus) (*base, error) {
	if len(c.docs) <= linearLimit {
		return nil, nil
	}
	if e.onDisk(len(c.docs)) {
		b, err := buildDisk(e.ctx, e.opts.Dir, c)
		if err == nil {
			e.sweep(c)
			return b, nil
		}
		if e.ctx.Err() != nil {
			return nil, err
		}
		e.log.Error("build the search index on disk; it is kept in memory instead", "dir", e.opts.Dir, "error", err)
	}
	return buildMemory(e.ctx, c)
}

// swap puts a new base under the current corpus and reports whether that needs another one already.
func (e *Engine) swap(b *base, err error, took time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.done.Broadcast()
	e.ended, e.took = time.Now(), took
	old := e.current.Load()
	switch {
	case err != nil:
		if e.ctx.Err() == nil {
			e.log.Error("build the search index; every tool is scored instead", "error", err)
		}
	case e.closed:
		e.closeBase(b)
	default:
		e.current.Store(e.newCorpus(old.docs, old.vocab, b))
		e.closeBase(old.base)
	}
	e.building = err == nil && !e.closed && e.needsBuild()
	return e.building
}

func (e *Engine) closeBase(b *base) {
	if b == nil {
		return
	}
	if err := b.release(); err != nil {
		e.log.Warn("close the search index", "error", err)
	}
}
