package providerlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAFloodOfLogLinesEndsInACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := New(slog.New(slog.NewTextHandler(&b, nil)), nil)
		for range 5000 {
			log.Printed("stderr", []byte("line"))
		}
		if n := strings.Count(b.String(), "msg=line"); n != perWindow {
			t.Errorf("%d lines", n)
		}
		time.Sleep(window)
		log.Printed("stderr", []byte("line"))
		for range 200 {
			log.Printed("stderr", []byte("line"))
		}
		log.Flush()
		for _, want := range []string{"lines=4900", "lines=101"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %s", want)
			}
		}
	})
}

func TestComplaintsCountAsTheProvidersLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := New(slog.New(slog.NewTextHandler(&b, nil)), nil)
		complain := log.Complaints()
		for range 60 {
			log.Printed("stderr", []byte("line"))
			complain.Warn("unreadable", "line", "x")
		}
		log.Logger().Warn("the daemon's own")
		log.Flush()
		if printed, complaints := strings.Count(b.String(), "msg=line"), strings.Count(b.String(), "msg=unreadable line=x"); printed+complaints != perWindow || complaints != 50 {
			t.Errorf("%d lines and %d complaints", printed, complaints)
		}
		for _, want := range []string{"lines=20", "the daemon's own"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %s", want)
			}
		}
	})
}

func TestALogLineKeepsItsLevelAndCannotPoseAsTheHost(t *testing.T) {
	tests := map[string]struct{ line, want string }{
		"plain text":             {"hello", `level=INFO msg=hello said.stream=stderr`},
		"hclog":                  {`{"@level":"warn","@message":"m","@module":"x","@timestamp":"t","provider":"forged","n":3}`, `level=WARN msg=m said.module=x said.n=3 said.provider=forged said.stream=stderr`},
		"other JSON":             {`{"level":"error"}`, `level=INFO msg="{\"level\":\"error\"}" said.stream=stderr`},
		"broken JSON":            {`{"@level":"error"`, `level=INFO msg="{\"@level\":\"error\"" said.stream=stderr`},
		"a line of many letters": {strings.Repeat("x", 5000), `level=INFO msg=` + strings.Repeat("x", maxText) + `… said.stream=stderr`},
		"no UTF-8":               {"a\xffb", "level=INFO msg=\"a\uFFFDb\" said.stream=stderr"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			noTime := func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}
			log := New(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: noTime})), nil)
			log.Printed("stderr", []byte(tt.line))
			if diff := cmp.Diff(tt.want+"\n", b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLastLinesAreKeptWithinTheirBounds(t *testing.T) {
	tests := map[string]struct {
		text  string
		lines int // said
		kept  int
	}{
		"a few":       {"x", 7, 7},
		"many":        {"x", keepLines + 70, keepLines},
		"big":         {strings.Repeat("x", maxText), keepBytes/maxText + 7, keepBytes / maxText},
		"none at all": {"", 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			log := New(slog.New(slog.DiscardHandler), nil)
			for range tt.lines {
				log.keep(slog.LevelInfo, FromStderr, tt.text, nil)
			}
			all, _ := log.After(0)
			if len(all) != tt.kept {
				t.Fatalf("%d lines are kept, want %d", len(all), tt.kept)
			}
			if tt.kept == 0 {
				return
			}
			if last := all[len(all)-1].Number; last != uint64(tt.lines) || log.Last() != last || all[0].Number != last-uint64(tt.kept)+1 {
				t.Errorf("numbers %d to %d", all[0].Number, last)
			}
			if diff := cmp.Diff(all[len(all)-2:], log.Tail(2)); diff != "" {
				t.Errorf("(-all +tail):\n%s", diff)
			}
			some, _ := log.After(log.Last() - 1)
			if diff := cmp.Diff(log.Tail(1), some); diff != "" {
				t.Errorf("(-tail +after):\n%s", diff)
			}
		})
	}
}

func TestAReaderIsToldOfTheNextLine(t *testing.T) {
	log := New(slog.New(slog.DiscardHandler), nil)
	log.Printed(FromStderr, []byte("first"))
	lines, more := log.After(log.Last())
	if len(lines) != 0 {
		t.Errorf("there is %v already", lines)
	}
	select {
	case <-more:
		t.Fatal("told before there is one")
	default:
	}
	log.Event("error", "db", []byte(`"second"`))
	<-more
	if lines, _ = log.After(1); len(lines) != 1 || lines[0].Text != "second" || lines[0].Level != slog.LevelError {
		t.Errorf("got %+v", lines)
	}
}

func TestWhatTheHostSaysIsKeptBesideTheProvidersWords(t *testing.T) {
	var b bytes.Buffer
	log := New(slog.New(slog.NewTextHandler(&b, nil)).With("provider", "p"), nil)
	host := log.Logger().With("attempt", 2).WithGroup("exit")
	host.Debug("left out")
	host.Warn("it died", "provider", "p", "signal", "SIGKILL")
	log.CallEvent("call-1", "warning", "db", []byte(`{"slow":true}`))
	log.Printed(FromStdout, []byte(`{"@level":"error","@message":"it died","from":"hermesd"}`))
	type view struct {
		From, Text string
		Level      slog.Level
		Fields     []Field
	}
	var got []view
	for _, l := range log.Tail(10) {
		got = append(got, view{l.From, l.Text, l.Level, l.Fields})
	}
	want := []view{
		{FromHost, "it died", slog.LevelWarn, []Field{{"attempt", "2"}, {"exit.signal", "SIGKILL"}}},
		{FromProtocol, `{"slow":true}`, slog.LevelWarn, []Field{{"logger", "db"}, {"call", "call-1"}}},
		{FromStdout, "it died", slog.LevelError, []Field{{"from", "hermesd"}}}, // it cannot pose as the host
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(b.String(), "slow") || !strings.Contains(b.String(), "SIGKILL") {
		t.Errorf("the daemon's log: %s", b.String())
	}
}

func TestSecretsAreMaskedBeforeALineIsCut(t *testing.T) {
	var b bytes.Buffer
	log := New(slog.New(slog.NewTextHandler(&b, nil)), func(s string) string { return strings.ReplaceAll(s, "hunter22", "***") })
	log.Printed(FromStderr, []byte(strings.Repeat("x", maxText-4)+"hunter22"))
	log.Printed(FromStdout, []byte(`{"@message":"m hunter22","hunter22":{"k":"hunter22"}}`))
	log.Event("info", "hunter22", []byte(`{"k":"hunter22"}`))
	log.CallEvent("hunter22", "info", "hunter22", []byte(`"hunter22"`))
	log.Logger().With("a", "hunter22").Warn("hunter22", "hunter22", errors.New("hunter22"))
	lines := log.Tail(10)
	if len(lines) != 5 {
		t.Errorf("%d lines", len(lines))
	}
	if kept := fmt.Sprint(lines); strings.Contains(kept, "hunt") || !strings.HasSuffix(lines[0].Text, "x***") {
		t.Error(kept)
	}
	if said, _, _ := strings.Cut(b.String(), "level=WARN"); strings.Contains(said, "hunt") { // the daemon's own lines are its logger's to mask
		t.Error(said)
	}
}

func FuzzPrinted(f *testing.F) {
	f.Add([]byte(`{"@level":"warn","@message":"m","k":[1]}`))
	f.Add([]byte("plain \xff text"))
	f.Fuzz(func(t *testing.T, line []byte) {
		log := New(slog.New(slog.DiscardHandler), nil)
		log.Printed(FromStderr, line)
		for _, l := range log.Tail(1) {
			if l.From != FromStderr || len(l.Text) > maxText+3*len(line) || !utf8.ValidString(l.Text) || len(l.Fields) > maxFields {
				t.Errorf("%+v", l)
			}
		}
	})
}
