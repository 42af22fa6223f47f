package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hermesd/hermesd/runtime/provider/providerlog"
)

// For tests outside the package.
var (
	ReadCache  = readCache
	ReadResult = func(raw []byte) error { _, err := readResult(raw); return err }
	ReadLine   = readLine
)

// ReadTask reads what a server says about a task: how often it is to be asked for, and, where it failed, with what.
func ReadTask(raw []byte) (time.Duration, error) {
	t, err := readTask(raw)
	if err != nil {
		return 0, err
	}
	if t.failed().code == 0 {
		return 0, errors.New("a failure without a code")
	}
	return t.poll, nil
}

// Fetched is what is left of an answer to a library's request, and Renamed an item of a list under another URI.
func Fetched(raw []byte) ([]byte, error) {
	o, err := readFetched(raw, "mcp://kb/")
	if err != nil {
		return nil, err
	}
	return o.raw, nil
}

func Renamed(raw []byte) []byte { return withMember(raw, "uri", "mcp://kb/x") }

// Events reads a whole stream.
func Events(stream []byte, most int) (data []string, err error) {
	err = readEvents(bytes.NewReader(stream), most, func(e *event) bool {
		data = append(data, string(e.data))
		return true
	})
	return data, err
}

// Receive hands bytes to a line that nobody uses, as a server would send them.
func Receive(data []byte) {
	l := newLine(providerlog.New(slog.New(slog.DiscardHandler), nil), time.Second)
	l.carrier = nowhere{}
	go func() {
		for {
			if _, err := l.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	l.receive(data, nil)
	l.close()
}

type nowhere struct{}

func (nowhere) send(context.Context, *frame) (bool, error) { return true, nil }
func (nowhere) established(string)                         {}
func (nowhere) close()                                     {}
