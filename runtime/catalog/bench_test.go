package catalog_test

import (
	"fmt"
	"testing"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func giant(n int) *fake {
	many := make([]string, n)
	for i := range many {
		many[i] = fmt.Sprintf("tool_%06d", i)
	}
	return newFake(tool.SourceMCP, "giant", many...)
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{100, 3300, 100_000} {
		v := catalogOf(giant(n)).Snapshot().View(nil)
		for label, name := range map[string]string{"exact": "mcp__giant__tool_000042", "folded": "MCP giant tool_000042", "unknown": "mcp__giant__tool_x00042"} {
			b.Run(fmt.Sprintf("%d/%s", n, label), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Find(name); (err == nil) == (label == "unknown") {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRefresh(b *testing.B) {
	for _, n := range []int{100, 3300, 100_000} {
		big, small := giant(n), newFake(tool.SourcePlugin, "p", "x")
		b.Run(fmt.Sprintf("%d/first", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				catalog.New(nil).SetProviders([]provider.Provider{big, small})
			}
		})
		c := catalogOf(big, small)
		b.Run(fmt.Sprintf("%d/status", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				small.status(provider.Backoff, "down")
				c.Refresh()
			}
		})
		b.Run(fmt.Sprintf("%d/one-tool", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				small.publish(func(o *provider.Offer) { o.Tools = small.tools(fmt.Sprintf("x%d", i)) })
				c.Refresh()
			}
		})
	}
}
