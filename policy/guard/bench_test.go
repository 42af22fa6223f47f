package guard_test

import (
	"testing"

	"github.com/hermesd/hermesd/policy/guard"
)

func BenchmarkCall(b *testing.B) {
	g, err := guard.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		c := call()
		for pb.Next() {
			leave, err := g.Admit(c)
			if err != nil {
				b.Error(err)
				return
			}
			leave()
			g.Count(c, &guard.Outcome{})
		}
	})
}
