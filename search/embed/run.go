package embed

import (
	"context"
	"errors"
	"time"
)

// Run embeds the catalog until ctx ends. It returns an error of closing the file of vectors only.
func (e *Embedder) Run(ctx context.Context) (err error) {
	defer e.endpoint.close()
	known := openShelf(e.dir, e.endpoint.url, e.endpoint.model, e.log)
	defer func() { err = errors.Join(err, known.close()) }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		}
		for pause := firstPause; !e.fill(ctx, known, e.current.Load()) && wait(ctx, pause); {
			pause = min(2*pause, lastPause)
		}
	}
}

// wait reports whether a pause went by before ctx ended.
func wait(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// fill gives the catalog its vectors. It is done, too, when there is a newer one, and not when the endpoint failed: then it
// is to be called again after a pause.
func (e *Embedder) fill(ctx context.Context, known *shelf, c *catalog) (done bool) {
	var missing []int
	for i, d := range c.digests {
		if v := known.get(d); v != nil {
			c.vectors[i].Store(v)
		} else {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 && known.hasRoom() {
		if ctx.Err() != nil || e.current.Load() != c {
			return true
		}
		batch := missing[:min(len(missing), batchSize)]
		if err := e.fillBatch(ctx, known, c, batch); err != nil {
			if ctx.Err() == nil {
				e.outage.failed(err, time.Now(), false)
			}
			return false
		}
		e.outage.over(false)
		missing = missing[len(batch):]
	}
	if len(missing) > 0 {
		e.log.Info("embeddings: the bound on memory is reached; the other tools are ranked by words", "tools", len(missing))
	}
	known.tidy(c)
	return true
}

func (e *Embedder) fillBatch(ctx context.Context, known *shelf, c *catalog, batch []int) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	texts := make([]string, len(batch))
	for i, slot := range batch {
		texts[i] = c.texts[slot]
	}
	vectors, err := e.endpoint.embed(ctx, texts)
	if err != nil {
		return err
	}
	if known.dimension > 0 && len(vectors[0]) != known.dimension {
		return errDimension(len(vectors[0]), known.dimension, known.path)
	}
	digests := make([]digest, len(batch))
	made := make([]*vector, len(batch))
	for i, slot := range batch {
		digests[i], made[i] = c.digests[slot], compress(vectors[i])
		c.vectors[slot].Store(made[i])
	}
	known.add(digests, made)
	return nil
}
