package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Report is what a verification found.
type Report struct {
	Records    int64       `json:"records"` // that were read
	First      int64       `json:"first"`   // the number of the first of them, 0 if there are none
	Head       Head        `json:"head"`    // the end of the chain as far as it is sound
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Fault is the first thing that is wrong; nil if the chain is sound.
	Fault *Fault `json:"fault,omitempty"`
}

// Fault is one break of the chain.
type Fault struct {
	Seq    int64  `json:"seq"` // the record's number
	Reason string `json:"reason"`
}

// Checkpoint stands in for the records that were pruned: all up to Seq.
type Checkpoint struct {
	Seq       int64     `json:"seq"`
	Hash      Digest    `json:"hash"` // of the last pruned record
	Time      time.Time `json:"time"`
	Signature Digest    `json:"signature"`
}

// message is what is signed.
func (c *Checkpoint) message() []byte {
	b := append([]byte("hermesd audit checkpoint 1\x00"), c.Hash...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Seq))
	return binary.BigEndian.AppendUint64(b, uint64(c.Time.UnixNano()))
}

func (c *Checkpoint) signedBy(key ed25519.PublicKey) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, c.message(), c.Signature)
}

// Verify reads the whole log and finds the first record that was changed, removed or moved. An error means that it could
// not be read; what is wrong with it is the report's. Records that were cut off at the end show only against the head
// that this process wrote, or against one that was kept elsewhere.
func (l *Log) Verify(ctx context.Context) (*Report, error) {
	l.catchUp()
	written := l.storedHead() // read before the records: what is added meanwhile only makes the chain longer
	tx, err := l.storage.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("audit verify: %w", err)
	}
	r, err := verify(ctx, tx, l.publicKey())
	if err := errors.Join(err, tx.Rollback()); err != nil {
		return nil, fmt.Errorf("audit verify: %w", err)
	}
	if r.Fault == nil && r.Head.Seq < written.Seq {
		r.Fault = &Fault{r.Head.Seq + 1, fmt.Sprintf("is missing: the log was written up to record %d", written.Seq)}
	}
	return r, nil
}

func (l *Log) publicKey() ed25519.PublicKey {
	if l.options.Key == nil {
		return nil
	}
	return l.options.Key.Public().(ed25519.PublicKey)
}

func verify(ctx context.Context, tx *sql.Tx, key ed25519.PublicKey) (r *Report, err error) {
	r = &Report{}
	if r.Checkpoint, err = checkpoint(ctx, tx); err != nil {
		return nil, err
	}
	if c := r.Checkpoint; c != nil {
		if !c.signedBy(key) {
			r.Fault = &Fault{c.Seq, "is the end of a pruned stretch whose signature is not valid"}
			return r, nil
		}
		r.Head = Head{c.Seq, c.Hash}
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+columns+" FROM audit ORDER BY seq")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	h := newChain()
	for rows.Next() {
		var e Entry
		if err := e.scan(rows.Scan); err != nil {
			return nil, err
		}
		if r.Fault = follow(h, r.Head, &e); r.Fault != nil {
			return r, nil
		}
		if r.First == 0 {
			r.First = e.Seq
		}
		r.Records++
		r.Head = Head{e.Seq, e.Hash}
	}
	return r, rows.Err()
}

// follow reports what is wrong with e as the record after head.
func follow(h *chain, head Head, e *Entry) *Fault {
	switch {
	case e.Seq <= head.Seq:
		return &Fault{e.Seq, "is older than the pruned stretch before it"}
	case e.Seq != head.Seq+1:
		return &Fault{head.Seq + 1, "is missing"}
	case !bytes.Equal(h.hash(head.Hash, e), e.Hash):
		return &Fault{e.Seq, "was changed or moved, or the one before it was"}
	}
	return nil
}

func checkpoint(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (*Checkpoint, error) {
	var c Checkpoint
	var nanos int64
	err := q.QueryRowContext(ctx, "SELECT seq, hash, time, signature FROM audit_checkpoint").Scan(&c.Seq, &c.Hash, &nanos, &c.Signature)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	c.Time = time.Unix(0, nanos).UTC()
	return &c, err
}
