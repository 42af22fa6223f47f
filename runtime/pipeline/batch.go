package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Do runs a batch and returns one outcome for each request, in order. All entries are brought to the approval stage
// before any of them runs. Then they run in order, neighbours that are parallel_safe side by side: what is not safe
// beside others waits for all before it, and all after it wait for it. An entry that fails never stops the others, and
// none runs twice.
func (p *Pipeline) Do(ctx context.Context, reqs []*Request) []Outcome {
	entries := make([]*Entry, len(reqs))
	for i, r := range reqs {
		entries[i] = p.enter(r)
		p.pass(ctx, entries[i], beforehand)
	}
	p.approve(ctx, entries)
	for rest := entries; len(rest) > 0; {
		n := sideBySide(rest)
		p.runAll(ctx, rest[:n])
		rest = rest[n:]
	}
	outs := make([]Outcome, len(entries))
	for i, e := range entries {
		p.conceal(e)
		outs[i] = e.out
	}
	return outs
}

// sideBySide counts the entries at the head of the list that may run at once: at least one.
func sideBySide(entries []*Entry) int {
	for i, e := range entries {
		if !e.parallel() {
			return max(i, 1)
		}
	}
	return len(entries)
}

// parallel reports whether the entry may run beside others; a refused one does not run at all.
func (e *Entry) parallel() bool {
	return e.out.Err != nil || e.Definition.Annotations.IsParallelSafe() || e.Provider.Identity().Parallel
}

// runAll runs entries side by side, as many at once as the options allow.
func (p *Pipeline) runAll(ctx context.Context, entries []*Entry) {
	if len(entries) == 1 {
		p.run(ctx, entries[0])
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, p.options.Parallel)
	for _, e := range entries {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p.run(ctx, e)
		})
	}
	wg.Wait()
}

// run takes one entry from approval to its record.
func (p *Pipeline) run(ctx context.Context, e *Entry) {
	if err := ctx.Err(); err != nil && e.out.Err == nil {
		e.out.Err = tool.Errorf(tool.Cancelled, "%s was not run: the caller gave up: %w", e.Call.Tool, err)
	}
	p.pass(ctx, e, running)
	p.conceal(e) // hooks are told of the error
	e.out.Call, e.out.Coerced = e.Call, e.Coerced
	e.out.Duration = time.Since(e.started)
	p.finish(ctx, e)
}
