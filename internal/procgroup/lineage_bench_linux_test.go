package procgroup_test

import (
	"os"
	"testing"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// What a new connection without a token costs: a look at every process of the machine, unless there is no child.
func BenchmarkHoldsSocket(b *testing.B) {
	b.Run("without children", func(b *testing.B) {
		for b.Loop() {
			procgroup.HoldsSocket(1)
		}
	})
	b.Run("with one", func(b *testing.B) {
		p, err := procgroup.Start(&procgroup.Command{Path: "/bin/sh", Args: []string{"-c", "read x"}, Env: os.Environ(), WantStdin: true})
		if err != nil {
			b.Fatal(err)
		}
		defer p.Stop(0)
		for b.Loop() {
			procgroup.HoldsSocket(1)
		}
	})
}
