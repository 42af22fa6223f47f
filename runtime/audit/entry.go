package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Digest is a SHA-256; nil where there is nothing to digest.
type Digest []byte

// MarshalText writes a digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = hex.AppendDecode(nil, text)
	return err
}

// Entry is one record as it is stored.
type Entry struct {
	Seq          int64           `json:"seq"`
	Time         time.Time       `json:"time"`
	Kind         tool.RecordKind `json:"kind"`
	CallID       string          `json:"call_id"`
	Agent        string          `json:"agent"`
	Session      string          `json:"session,omitempty"`
	Via          tool.Via        `json:"via,omitempty"`
	Tool         tool.Name       `json:"tool"`
	Source       tool.Source     `json:"source,omitempty"`
	SourceName   string          `json:"source_name,omitempty"`
	ArgsDigest   Digest          `json:"args_digest,omitempty"`
	Args         string          `json:"args,omitempty"` // masked JSON, only where the operator asked for it
	Coerced      json.RawMessage `json:"coerced,omitempty"`
	Rule         string          `json:"rule,omitempty"`
	Approval     string          `json:"approval,omitempty"`
	By           string          `json:"by,omitempty"`
	Outcome      tool.Outcome    `json:"outcome,omitempty"`
	Code         tool.Code       `json:"code,omitempty"`
	Duration     time.Duration   `json:"duration_ns,omitempty"`
	ResultDigest Digest          `json:"result_digest,omitempty"`
	Hash         Digest          `json:"hash"`
}

// columns are an entry's, in the order in which they are stored, hashed and read.
const columns = "seq, time, kind, call_id, agent, session, via, tool, source, source_name, args_digest, args, coerced," +
	" rule, approval, answered_by, outcome, code, duration, result_digest, hash"

// scan reads a row of columns.
func (e *Entry) scan(scan func(...any) error) error {
	var nanos int64
	var coerced string
	err := scan(&e.Seq, &nanos, &e.Kind, &e.CallID, &e.Agent, &e.Session, &e.Via, &e.Tool, &e.Source, &e.SourceName,
		(*[]byte)(&e.ArgsDigest), &e.Args, &coerced, &e.Rule, &e.Approval, &e.By, &e.Outcome, &e.Code, &e.Duration, (*[]byte)(&e.ResultDigest), (*[]byte)(&e.Hash))
	e.Time = time.Unix(0, nanos).UTC()
	if coerced != "" {
		e.Coerced = json.RawMessage(coerced)
	}
	return err
}

// chain computes hashes; what it has is kept to be used again.
type chain struct {
	h   hash.Hash
	buf []byte
}

func newChain() *chain { return &chain{h: sha256.New()} }

// hash is the hash of an entry that follows the one with the hash before.
func (c *chain) hash(before Digest, e *Entry) Digest {
	c.buf = e.append(c.buf[:0])
	return c.sum(before, c.buf)
}

var chainMark = []byte("hermesd audit 1\x00")

// sum is the hash of what append wrote of an entry.
func (c *chain) sum(before Digest, appended []byte) Digest {
	c.h.Reset()
	c.h.Write(chainMark)
	c.h.Write(before)
	c.h.Write(appended)
	return c.h.Sum(nil)
}

// link makes e the entry that follows head, and returns the new head. It appends e's line of the journal to b.
func (c *chain) link(head Head, e *Entry, b []byte) (Head, []byte) {
	e.Seq = head.Seq + 1
	begin := len(b)
	b = e.append(b)
	e.Hash = c.sum(head.Hash, b[begin:])
	return Head{e.Seq, e.Hash}, append(b, e.Hash...)
}
