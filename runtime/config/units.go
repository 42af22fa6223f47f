package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as a whole number with a unit: B, KiB, MiB, GiB or TiB ("16MiB").
type Size int64

const day = 24 * time.Hour

// parseDuration reads a duration as Go writes it ("1m30s"), with "d" for days of 24 hours in front ("90d", "1d12h").
func parseDuration(text string) (time.Duration, error) {
	rest, total := text, time.Duration(0)
	if days, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > uint64(math.MaxInt64/int64(day)) {
			return 0, fmt.Errorf("%q is no duration", text)
		}
		if total = time.Duration(n) * day; after == "" {
			return total, nil
		}
		rest = after
	}
	d, err := time.ParseDuration(rest)
	if err != nil || total > 0 && (d < 0 || total+d < total) {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	return total + d, nil
}

// formatDuration writes whole days as days and drops the zeros that time.Duration adds, so that what was written as "90d"
// or "10m" reads so again.
func formatDuration(d time.Duration) string {
	if d != 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sizeUnits goes from the largest to the smallest, since every unit ends in the last one.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String uses the largest unit that divides the size.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.name
		}
	}
	return "0B"
}

func parseSize(text string) (Size, error) {
	for _, unit := range sizeUnits {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		return Size(n * unit.bytes), nil
	}
	return 0, fmt.Errorf("%q is no size", text)
}
