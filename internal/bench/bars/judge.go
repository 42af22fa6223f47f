package bars

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Readings are what one round of all benchmarks measured.
type Readings map[Source]float64

// processors is what go test adds to a benchmark's name where there is more than one.
var processors = regexp.MustCompile(`-\d+$`)

// Read takes the readings from the output of go test -bench; lines that are none are passed over.
func (r Readings) Read(output io.Reader) error {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(fields[1]); err != nil {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		for pair := range slices.Chunk(fields[2:], 2) {
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil || len(pair) < 2 {
				return fmt.Errorf("benchmark %s: %q is not a value with its unit", name, pair)
			}
			r[Source{name, pair[1]}] = value
		}
	}
	return lines.Err()
}

// Verdict is a bar with the medians over all rounds.
type Verdict struct {
	Bar
	Measured float64
	Limit    float64
	Others   []float64 // what the bar's terms are of; empty if something was not measured
	Missed   bool
	// Beyond is by which share of its limit the reading lies on the wrong side, negative on the right one: the median of the
	// rounds' shares, since what is compared was measured in the same round.
	Beyond  float64
	Missing *Source // what no round measured
}

// Judge holds the rounds against a bar.
func (b *Bar) Judge(rounds []Readings) Verdict {
	v := Verdict{Bar: *b, Missed: true}
	var measured, limits, beyond []float64
	for _, r := range rounds {
		limit := b.Base
		for _, source := range b.sources() {
			if _, ok := r[source]; !ok {
				v.Missing = &source
				return v
			}
		}
		for _, t := range b.Terms {
			limit += t.Factor * r[t.Of]
		}
		if !(limit > 0) { // a reading of nothing is no comparison
			v.Missing = &b.Terms[0].Of
			return v
		}
		share := r[b.Reading]/limit - 1
		if b.AtLeast {
			share = 1 - r[b.Reading]/limit
		}
		measured, limits, beyond = append(measured, r[b.Reading]), append(limits, limit), append(beyond, share)
	}
	for _, t := range b.Terms {
		v.Others = append(v.Others, Median(rounds, t.Of))
	}
	v.Measured, v.Limit, v.Beyond = median(measured), median(limits), median(beyond)
	allowed := Noise
	if b.Exact {
		allowed = 0
	}
	v.Missed = v.Beyond > allowed
	return v
}

// Missed holds readings of a test against their bars, and says which are missed, or have none.
func (r Readings) Missed() (list []string) {
	held := 0
	for _, b := range Table() {
		if _, ok := r[b.Reading]; !ok {
			continue
		}
		held++
		if v := b.Judge([]Readings{r}); v.Missed {
			list = append(list, fmt.Sprintf("%s: %.4g %s, the bar is %.4g: %s", b.What, v.Measured, b.Reading.Unit, v.Limit, &v))
		}
	}
	if held < len(r) {
		list = append(list, fmt.Sprintf("%d of the readings have no bar: %v", len(r)-held, r))
	}
	return list
}

func (b *Bar) sources() []Source {
	list := []Source{b.Reading}
	for _, t := range b.Terms {
		list = append(list, t.Of)
	}
	return list
}

// String says it in one word or two.
func (v *Verdict) String() string {
	switch {
	case v.Missing != nil:
		return "NOT MEASURED: " + v.Missing.String()
	case v.Missed:
		return fmt.Sprintf("MISSED by %.0f%%", v.Beyond*100)
	case v.Beyond > 0:
		return fmt.Sprintf("met within noise, %.1f%% beyond", v.Beyond*100)
	default:
		return "met"
	}
}

// Median is that of one reading; 0 if no round has it.
func Median(rounds []Readings, source Source) float64 {
	var list []float64
	for _, r := range rounds {
		if x, ok := r[source]; ok {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return 0
	}
	return median(list)
}

func median(list []float64) float64 {
	slices.Sort(list)
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}
