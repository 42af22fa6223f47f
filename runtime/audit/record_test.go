package audit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestStoredArgumentsAreMaskedAndCutBetweenCharacters(t *testing.T) {
	log := &Log{options: Options{Mask: redact.New("a\"b\\cdef").Mask}}
	for name, tt := range map[string]struct{ args, want string }{
		"short":                    {`{"a":1}`, `{"a":1}`},
		"a secret as JSON has it":  {`{"k":"a\"b\\cdef"}`, `{"k":"***"}`},
		"no UTF-8":                 {"{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}"},
		"cut within a character":   {strings.Repeat("é", maxArgs), strings.Repeat("é", (maxArgs-9)/2) + "… (cut)"},
		"cut within another":       {"x" + strings.Repeat("é", maxArgs), "x" + strings.Repeat("é", (maxArgs-10)/2) + "… (cut)"},
		"as long as it may be":     {strings.Repeat("x", maxArgs), strings.Repeat("x", maxArgs)},
		"a secret where it is cut": {strings.Repeat("x", maxArgs-9-4) + `a\"b\\cdef` + strings.Repeat("x", 99), strings.Repeat("x", maxArgs-9-4) + "***x… (cut)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := log.storable([]byte(tt.args))
			if got != tt.want {
				t.Errorf("got %d bytes: %.40q…%.40q", len(got), got, got[max(0, len(got)-40):])
			}
			if len(got) > maxArgs || !utf8.ValidString(got) {
				t.Errorf("%d bytes, UTF-8 %t", len(got), utf8.ValidString(got))
			}
		})
	}
}

func TestANameThatNoToolHasIsBounded(t *testing.T) {
	log := &Log{options: Options{Mask: redact.New().Mask}}
	for name, tt := range map[string]struct{ tool, want string }{
		"a tool's":           {strings.Repeat("x", tool.MaxName), strings.Repeat("x", tool.MaxName)},
		"of a million bytes": {strings.Repeat("x", 1<<20), strings.Repeat("x", maxName-9) + "… (cut)"},
		"cut in a character": {strings.Repeat("é", maxName), strings.Repeat("é", (maxName-9)/2) + "… (cut)"},
		"no UTF-8":           {"\xff", "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := log.entry(&tool.Record{Tool: tt.tool}).Tool; got != tt.want {
				t.Errorf("got %d bytes: %.40q", len(got), got)
			}
		})
	}
}
