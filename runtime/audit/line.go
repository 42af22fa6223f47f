package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// append writes all of an entry but its hash: three numbers, then texts, each with its length before it, so that no two
// entries have the same bytes. It is what is hashed; with the hash behind it, it is the entry's line in the journal.
func (e *Entry) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Duration))
	for _, s := range [...]string{
		string(e.Kind), e.CallID, e.Agent, e.Session, string(e.Via), e.Tool, string(e.Source), e.SourceName, string(e.ArgsDigest), e.Args,
		string(e.Coerced), e.Rule, e.Approval, e.By, string(e.Outcome), string(e.Code), string(e.ResultDigest),
	} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// lineRoom is the most that an entry takes in the journal besides its texts, in bytes.
const lineRoom = 128

// size is what an entry takes in the journal at most, in bytes.
func (e *Entry) size() int {
	return lineRoom + len(e.Kind) + len(e.CallID) + len(e.Agent) + len(e.Session) + len(e.Via) + len(e.Tool) + len(e.Source) + len(e.SourceName) +
		len(e.ArgsDigest) + len(e.Args) + len(e.Coerced) + len(e.Rule) + len(e.Approval) + len(e.By) + len(e.Outcome) + len(e.Code) + len(e.ResultDigest)
}

func size(entries []Entry) (n int) {
	for i := range entries {
		n += entries[i].size()
	}
	return n
}

var errLine = errors.New("a line of the journal is no audit record")

// readLine reads a line of the journal.
func readLine(line []byte) (Entry, error) {
	if len(line) < 3*8+sha256.Size {
		return Entry{}, errLine
	}
	b, sum := line[:len(line)-sha256.Size], line[len(line)-sha256.Size:]
	number := func() int64 {
		n := binary.BigEndian.Uint64(b)
		b = b[8:]
		return int64(n)
	}
	e := Entry{Seq: number(), Time: time.Unix(0, number()).UTC(), Duration: time.Duration(number()), Hash: sum}
	var texts [17]string
	for i := range texts {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return Entry{}, errLine
		}
		b = b[size:]
		texts[i], b = string(b[:n]), b[n:]
	}
	if len(b) > 0 {
		return Entry{}, errLine
	}
	e.Kind, e.CallID, e.Agent, e.Session = tool.RecordKind(texts[0]), texts[1], texts[2], texts[3]
	e.Via, e.Tool, e.Source, e.SourceName = tool.Via(texts[4]), texts[5], tool.Source(texts[6]), texts[7]
	e.ArgsDigest, e.Args, e.Coerced = optional(texts[8]), texts[9], optional(texts[10])
	e.Rule, e.Approval, e.By = texts[11], texts[12], texts[13]
	e.Outcome, e.Code, e.ResultDigest = tool.Outcome(texts[14]), tool.Code(texts[15]), optional(texts[16])
	return e, nil
}

// optional is nil where there is nothing.
func optional(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
