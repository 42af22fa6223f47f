package mcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was read of one client is not taken for another's, nor is a request that says less taken for the one before it.
func TestAClientIsKnownByAllThatItSays(t *testing.T) {
	type said struct{ info, caps string }
	all := []said{
		{`{"name":"a","version":"1"}`, `{}`},
		{`{"name":"b","version":"1"}`, `{}`},
		{`{"name":"a","version":"1"}`, `{"roots":{}}`},
		{`{"name":"a","version":"1"}`, `{"elicitation":{"form":{}}}`},
		{``, `{}`},
		{`{"name":"a"}`, ``},
		{`"a"`, `{}`},
		{`{"name":"a"}`, `[]`},
		{`{"name":"` + strings.Repeat("a", 2*maxKnown) + `"}`, `{}`},
	}
	var last lastClient
	read := func(l *lastClient, s said) (name string, can any) {
		var info []byte
		if s.info != "" {
			info = []byte(s.info)
		}
		k := l.read(info, []byte(s.caps))
		if k == nil {
			return "", nil
		}
		return k.name, k.can
	}
	for _, first := range all {
		for _, second := range all {
			read(&last, first)
			name, can := read(&last, second)
			wantName, wantCan := read(&lastClient{}, second)
			if diff := cmp.Diff(wantCan, can); diff != "" || name != wantName {
				t.Errorf("after %v, %v is %s %s", first, second, name, diff)
			}
		}
	}
	if k := last.known.Load(); len(k.info)+len(k.caps) > maxKnown {
		t.Errorf("%d bytes of a client are kept", len(k.info)+len(k.caps))
	}
}
