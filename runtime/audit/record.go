package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/tool"
)

// maxArgs bounds the arguments that are stored, in bytes; the digest covers all of them.
const maxArgs = 64 << 10

// entry is a record as it will be stored, but for its place in the chain.
func (l *Log) entry(r *tool.Record) Entry {
	e := Entry{
		Time: time.Now(), Kind: r.Kind, CallID: text(r.CallID), Agent: text(r.Agent), Session: text(r.Session), Via: r.Via,
		Tool: cut(r.Tool, maxName), Source: r.Source, SourceName: text(r.SourceName), Rule: text(r.Rule), Approval: text(r.Approval),
		By: text(r.By), Outcome: r.Outcome, Code: r.Code, Duration: r.Duration, ResultDigest: digestResult(r.Result),
	}
	if r.Arguments != nil {
		sum := sha256.Sum256(r.Arguments)
		e.ArgsDigest = sum[:]
		if l.options.Arguments {
			e.Args = l.storable(r.Arguments)
		}
	}
	if len(r.Coerced) > 0 {
		raw, err := json.Marshal(few(r.Coerced))
		if err != nil {
			panic("audit: strings did not marshal: " + err.Error())
		}
		e.Coerced = raw
	}
	return e
}

// maxText bounds each text of a record that has no bound of its own, and the paths of coerced arguments together, in bytes:
// whatever a call brings, its record is small.
const maxText = 4 << 10

func text(s string) string { return cut(s, maxText) }

// few are the first of paths, and how many there are more.
func few(paths []string) (list []string) {
	room := maxText
	for i, p := range paths {
		p = text(p)
		if room -= len(p); room < 0 {
			return append(list, fmt.Sprintf("… (%d more)", len(paths)-i))
		}
		list = append(list, p)
	}
	return list
}

// maxName bounds the name that is stored, in bytes, lest a call by a made-up name fills the log. A tool's own is never so
// long: only one that does not exist is cut.
const maxName = 2 * tool.MaxName

// storable masks and bounds arguments.
func (l *Log) storable(args []byte) string { return cut(l.options.Mask(string(args)), maxArgs) }

// cut bounds a text, in bytes, between characters. It is stored as UTF-8, as exports have it: any other byte would be another
// one there, and the record's hash could not be made again.
func cut(s string, limit int) string {
	if !utf8.ValidString(s) { // which is known sooner
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) > limit {
		const mark = "… (cut)"
		s = strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
	}
	return s
}

// digestResult covers everything that an agent reads of a result.
func digestResult(r *tool.Result) Digest {
	if r == nil {
		return nil
	}
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, c := range r.Content {
		part(c)
	}
	part(r.Structured)
	part(r.Meta)
	if r.IsError {
		part([]byte("error"))
	}
	return h.Sum(nil)
}
