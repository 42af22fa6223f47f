package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hermesd/hermesd/hooks"
	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/results"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

// busy is a provider that does next to nothing, so that what is measured is the way to it.
type busy struct {
	offer  provider.Offer
	result *tool.Result
}

func newBusy() *busy {
	yes, no := true, false
	return &busy{result: tool.TextResult("found"), offer: provider.Offer{
		Status: provider.Status{State: provider.Ready},
		Tools: []tool.Definition{{
			Name: "kb_search", OwnName: "search", Toolset: "kb", Source: tool.SourcePlugin, SourceName: "kb",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}},"required":["q"]}`),
			Annotations: tool.Annotations{ReadOnly: &yes, Destructive: &no, ParallelSafe: &yes},
		}},
	}}
}

func (b *busy) Identity() provider.Identity {
	return provider.Identity{Name: "kb", Source: tool.SourcePlugin}
}
func (b *busy) Offer() *provider.Offer { return &b.offer }
func (b *busy) Invoke(context.Context, *provider.Request) (*tool.Result, error) {
	return b.result, nil
}

// twentyRules are of the kinds that operators write; the last ones look at arguments, and none decides.
func twentyRules() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "rule \"destructive %d\" {\n  when   = tool.destructive && !startswith(tool.name, \"sandbox_%d\")\n  action = \"ask\"\n}\n", i, i)
	}
	for i := range 5 {
		fmt.Fprintf(&b, "rule \"word %d\" {\n  when   = can(regex(\"forbidden-%d\", args.q))\n  action = \"deny\"\n}\n", i, i)
	}
	for i := range 5 {
		fmt.Fprintf(&b, "rule \"many %d\" {\n  when   = try(args.n, 0) > %d && session.attended\n  action = \"ask\"\n}\n", i, 1000+i)
	}
	return b.String()
}

// everything is a pipeline with all stages, as the daemon makes it.
func everything(b *testing.B, sync string) *pipeline.Pipeline {
	b.Helper()
	dir := b.TempDir()
	text := fmt.Sprintf("state_dir = %q\nguard {\n  calls_per_minute = 10000000\n}\n", dir) + twentyRules()
	cfg, diags := config.Parse(filepath.Join(dir, "hermesd.hcl"), []byte(text), nil)
	if diags.HasErrors() {
		b.Fatal(diags.Err())
	}
	policy, diags := NewPolicy(cfg, nil)
	if diags.HasErrors() {
		b.Fatal(diags.Err())
	}
	guard, err := newGuard(cfg)
	if err != nil {
		b.Fatal(err)
	}
	chain, err := hooks.New(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	broker, err := approval.New(b.Context(), &approval.Options{Settings: approval.Settings{Policy: policy.Version()}})
	if err != nil {
		b.Fatal(err)
	}
	kept, err := results.Open(&results.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	db, log := recordsIn(b, dir, sync)
	b.Cleanup(func() {
		broker.Close()
		chain.Close()
		for _, close := range []func() error{kept.Close, log.Close, db.Close} {
			if err := close(); err != nil {
				b.Error(err)
			}
		}
	})
	p, err := pipeline.New(&pipeline.Options{
		Guard: guard, Hooks: callHooks{chain}, Rules: policy, Approvals: &approvals{Broker: broker}, Audit: log, Results: keptResults{kept}, Mask: cfg.Mask,
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// measure lets callers make calls and reports calls a second and the median of one call.
func measure(b *testing.B, callers int, call func() error) {
	if err := call(); err != nil { // schemas are compiled at the first call
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, callers)
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				at := time.Now()
				if err := call(); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "calls/s")
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, "p50-µs")
}

// BenchmarkPipeline is a call through all stages (20 rules, no hook, audit on), at the pipeline's own entry, beside the raw
// call of the provider and one durable commit. The bars: at most 200 µs plus one commit over the raw call at the median,
// and 8,000 calls a second at 16 callers.
func BenchmarkPipeline(b *testing.B) {
	kb := newBusy()
	view := oneTool{provider.Binding{Definition: &kb.offer.Tools[0], Provider: kb}}
	args := json.RawMessage(`{"q":"deploy","n":5}`)
	ctx := context.Background()
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("raw provider/callers=%d", callers), func(b *testing.B) {
			measure(b, callers, func() error {
				_, err := kb.Invoke(ctx, &provider.Request{Call: &tool.Call{Tool: "kb_search", Arguments: args}, Definition: &kb.offer.Tools[0]})
				return err
			})
		})
	}
	for _, sync := range []string{"process", "power"} {
		b.Run("one commit, "+sync, func(b *testing.B) { commits(b, sync) })
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("all stages, audit %s/callers=%d", sync, callers), func(b *testing.B) {
				p := everything(b, sync)
				measure(b, callers, func() error {
					out := p.Call(ctx, &pipeline.Request{View: view, Call: &tool.Call{Agent: "desk", Session: "desk/1", Tool: "kb_search", Arguments: args}})
					if out.Err != nil {
						return out.Err
					}
					return nil
				})
			})
		}
	}
}

// recordsIn opens an audit. Both are the caller's to close, the log first.
func recordsIn(b *testing.B, dir, sync string) (*store.Store, *audit.Log) {
	b.Helper()
	db, err := store.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	writer, err := db.Writer(sync == "power")
	if err != nil {
		b.Fatal(err)
	}
	journal, err := writer.Journal("audit")
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Open(b.Context(), writer, journal, nil)
	if err != nil {
		b.Fatal(err)
	}
	return db, log
}

// commits measures one durable record by itself.
func commits(b *testing.B, sync string) {
	db, log := recordsIn(b, b.TempDir(), sync)
	b.Cleanup(func() {
		for _, close := range []func() error{log.Close, db.Close} {
			if err := close(); err != nil {
				b.Error(err)
			}
		}
	})
	var n atomic.Int64
	measure(b, 1, func() error {
		return log.Started(b.Context(), &tool.Record{Kind: tool.RecordStarted, CallID: fmt.Sprint(n.Add(1))})
	})
}
