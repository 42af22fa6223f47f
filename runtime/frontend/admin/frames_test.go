package admin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

// Whatever comes, reading ends, and with io.EOF only after a frame that says so.
func FuzzFrames(f *testing.F) {
	const well = "e\x00\x00\x00\x02{}"
	for _, seed := range []string{"", well, "d\x00\x00\x00\x03abc" + well, "d\x00\x00\x00\x00" + well, "d\xff\xff\xff\xffabc", "d\x00\x00\x00\x09abc", "o\x00\x00\x00\x02{}", "e\x00\x00\x00\x0d{\"code\":\"x\"}x", "e\x00\x00\x00\x0c{\"code\":13}x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		said, err := io.ReadAll(&framed{r: bufio.NewReader(bytes.NewReader(in))})
		if err == nil && !bytes.Contains(in, []byte("e\x00\x00")) {
			t.Errorf("%q ended well", in)
		}
		if len(said) > len(in) {
			t.Errorf("%d bytes of %d", len(said), len(in))
		}
		a := &attached{framed{r: bufio.NewReader(bytes.NewReader(in))}}
		if o, err := a.opening(); err != nil && o.Agent != "" && !errors.Is(err, ErrBroken) {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

func TestTheFirstFrameOfAClientIsAnOpening(t *testing.T) {
	for name, c := range map[string]struct {
		in, agent string
		ok        bool
	}{
		"an opening":              {"o\x00\x00\x00\x0d{\"agent\":\"a\"}", "a", true},
		"of the local agent":      {"o\x00\x00\x00\x02{}", "", true},
		"data":                    {"d\x00\x00\x00\x02{}", "", false},
		"another protocol":        {"GET / HTTP/1.1\r\n\r\n", "", false},
		"an opening without JSON": {"o\x00\x00\x00\x01x", "", false},
		"half an opening":         {"o\x00\x00\x00\x0d{\"agent", "", false},
	} {
		a := &attached{framed{r: bufio.NewReader(bytes.NewReader([]byte(c.in)))}}
		if o, err := a.opening(); (err == nil) != c.ok || c.ok && o.Agent != c.agent {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}
