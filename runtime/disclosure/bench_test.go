package disclosure_test

import (
	"fmt"
	"testing"

	"github.com/hermesd/hermesd/runtime/disclosure"
)

func BenchmarkAssembly(b *testing.B) {
	for _, n := range []int{100, 3300, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := catalogOf(server("giant", n), server("small", 20), files())
			agent := &disclosure.Agent{Settings: disclosure.Settings{Enabled: disclosure.On}}
			b.ReportAllocs()
			for b.Loop() {
				disclosure.New(c).For(agent)
			}
		})
	}
}
