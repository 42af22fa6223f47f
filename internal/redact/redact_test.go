package redact_test

import (
	"testing"

	"github.com/hermesd/hermesd/internal/redact"
)

func TestMask(t *testing.T) {
	for name, tt := range map[string]struct {
		secrets  []string
		in, want string
	}{
		"every place":                     {[]string{"hunter22"}, "a hunter22 b hunter22", "a [secret] b [secret]"},
		"nothing without secrets":         {nil, "hunter22", "hunter22"},
		"a short value is left":           {[]string{"on"}, "once", "once"},
		"as it is written in JSON":        {[]string{"a\"b\\cdef"}, `{"k":"a\"b\\cdef"}`, `{"k":"[secret]"}`},
		"with and without HTML's escapes": {[]string{`a"<secret>`}, `["a\"<secret>","a\"\u003csecret\u003e"]`, `["[secret]","[secret]"]`},
		"a secret inside another":         {[]string{"secret-1", "secret-12"}, "secret-12", "[secret]"},
		"the longer one, however ordered": {[]string{"secret-12", "secret-1"}, "secret-12 secret-1", "[secret] [secret]"},
	} {
		t.Run(name, func(t *testing.T) {
			var m redact.Masker
			m.Set(tt.secrets)
			if got := m.Mask(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSetReplacesTheSecrets(t *testing.T) {
	var m redact.Masker
	m.Set([]string{"first-one"})
	m.Set([]string{"second-one"})
	if got := m.Mask("first-one second-one"); got != "first-one [secret]" {
		t.Error(got)
	}
	m.Set(nil)
	if got := m.Mask("second-one"); got != "second-one" {
		t.Error(got)
	}
}
