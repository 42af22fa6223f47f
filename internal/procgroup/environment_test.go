package procgroup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/procgroup"
)

func TestEnvironmentHoldsNothingThatWasNotNamed(t *testing.T) {
	host := map[string]string{"PATH": "/bin", "HOME": "/root", "SECRET": "s", "TOKEN": "t", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := host[name]; return v, ok }
	got := procgroup.Environment([]string{"TOKEN", "EMPTY", "MISSING"}, map[string]string{"HOME": "/home/p", "A": "1"}, lookup)
	want := []string{"A=1", "EMPTY=", "HOME=/home/p", "PATH=/bin", "TOKEN=t"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"nothing written":                        {nil, nil},
		"an unfinished line counts":              {[]string{"a\nb"}, []string{"a", "b"}},
		"only the last two":                      {[]string{"a\nb\n", "c\nd\n"}, []string{"c", "d"}},
		"a line in pieces":                       {[]string{"a", "b", "c\n"}, []string{"abc"}},
		"empty lines are left out":               {[]string{"a\n\n \n"}, []string{"a"}},
		"control characters are left out":        {[]string{"\x1b[31mred\x00\n"}, []string{"[31mred"}},
		"a long line keeps its beginning":        {[]string{strings.Repeat("x", 600) + "\ny\n"}, []string{strings.Repeat("x", 512), "y"}},
		"what follows a long line in pieces too": {[]string{strings.Repeat("x", 512), "zzz", "z\ny"}, []string{strings.Repeat("x", 512), "y"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tail := procgroup.Tail(2)
			for _, w := range tt.writes {
				if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("write: %d, %v", n, err)
				}
			}
			if diff := cmp.Diff(tt.want, tail.Lines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
