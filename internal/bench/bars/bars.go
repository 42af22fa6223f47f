// Package bars is the one home of the numbers that hermesd promises: each bar names the reading that it is about and the
// limit, which may depend on other readings of the same run. Readings are what Go benchmarks print.
package bars

// Noise is by how much, as a share of its limit, the median of a reading may lie beyond before the bar counts as missed.
// Medians of two runs of the same program on a machine that nobody else uses differ by as much. Exact bars have none.
const Noise = .05

// Source is a benchmark's name without its prefix Benchmark and the number of processors, and a unit.
type Source struct{ Benchmark, Unit string }

func (s Source) String() string { return s.Benchmark + " " + s.Unit }

// Bar is one promise: its reading is at most, or at least, Base and the sum of Terms.
type Bar struct {
	Issue   int
	What    string
	Reading Source
	AtLeast bool    // else at most
	Base    float64 // in the reading's unit
	Terms   []Term  // what it is compared with, side by side
	Beside  *Source // is printed with it and decides nothing
	Exact   bool    // no allowance for noise: the reading hardly depends on how busy the machine is
	Data    bool    // needs the evaluation data
}

// Term is Factor times another reading of the same run, in the same unit.
type Term struct {
	Factor float64
	Of     Source
}
