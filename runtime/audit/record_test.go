package audit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hermesd/hermesd/internal/redact"
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
