package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// broken is a call's stream that ends with an error.
type broken struct{ err error }

func (b broken) Recv() (*adminpb.CallEvent, error) { return nil, b.err }

func TestACallThatDidNotRunIsNotSaidToBeCutOff(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"the daemon refuses the agent": {fmt.Errorf("there is no agent %q: %w", "nobody", admin.ErrRefused), "the call did not run: there is no agent"},
		"the daemon goes away":         {errors.Join(admin.ErrBroken, io.ErrUnexpectedEOF), "may or may not have run"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cli{out: io.Discard, err: io.Discard}
			if err := c.printCall(broken{tt.err}); err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestArgumentsAreReadWholeOrNotAtAll(t *testing.T) {
	head, tail := `{"x":"`, `"}`
	fits := head + strings.Repeat("x", maxArguments-len(head)-len(tail)) + tail
	for name, tt := range map[string]struct {
		in string
		ok bool
	}{
		"as many as there may be": {fits, true},
		"one more":                {" " + fits, false},
		"what would be whole if it was cut there": {fits + "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := (&cli{in: strings.NewReader(tt.in)}).arguments([]string{"-"})
			if (err == nil) != tt.ok || err == nil && len(raw) != len(tt.in) || err != nil && !strings.Contains(err.Error(), "more than 16 MiB") {
				t.Errorf("%d bytes, %v", len(raw), err)
			}
		})
	}
}
