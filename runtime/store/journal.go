package store

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const (
	// journalRoom is what each file of a journal has from the beginning, in bytes: to write where a file ends already
	// takes the disk much longer than to write inside it.
	journalRoom = 1 << 20
	// maxJournal bounds what one file of a journal holds, in bytes.
	maxJournal = 64 << 20
	// maxRecord bounds one record of a journal, in bytes.
	maxRecord = 16 << 20
)

// Journal keeps records that wait for a transaction. To append to a file costs a tenth of what a transaction costs, and
// survives as much; so what must be durable at once goes here, and into the database together with much else.
//
// It has two files in the state directory. While a transaction takes over what one of them holds, the other is written.
// Nothing is ever removed from them: what a file holds is overwritten from its beginning when it was taken over. Each record
// carries the number of the turn in which its file was begun, so that what an earlier turn left behind the end is known.
//
// A journal is used by one goroutine at a time. The store closes it.
type Journal struct {
	store   *Store
	power   bool
	files   [2]*os.File
	current int    // the file that is written
	end     int64  // of what it holds
	turn    uint64 // of the current file; it only grows
	held    bool   // the other file has records that are nowhere else
	left    [][]byte
}

// Journal opens the journal of a name, and makes it where it is missing. What it holds survives what the writer's
// transactions survive.
func (w *Writer) Journal(name string) (*Journal, error) {
	s := w.store
	j := &Journal{store: s, power: w.power}
	s.mu.Lock()
	s.journals = append(s.journals, j) // before it is whole, so that the store closes what there is of it
	s.mu.Unlock()
	type part struct {
		turn    uint64
		records [][]byte
	}
	var parts [2]part
	for i := range j.files {
		f, err := openJournal(filepath.Join(s.dir, fmt.Sprintf("%s-%d.journal", name, i)))
		if err != nil {
			return nil, s.explain(fmt.Errorf("journal: %w", err))
		}
		j.files[i] = f
		if parts[i].turn, parts[i].records, err = readJournal(io.NewSectionReader(f, 0, maxJournal)); err != nil {
			return nil, s.explain(fmt.Errorf("journal %s: %w", f.Name(), err))
		}
	}
	slices.SortFunc(parts[:], func(a, b part) int { return cmp.Compare(a.turn, b.turn) })
	j.turn = parts[1].turn + 1
	j.left = slices.Concat(parts[0].records, parts[1].records)
	return j, nil
}

// Left are the records that were there when the journal was opened, oldest first: those that nobody took over, and before
// them such that somebody did. They are gone with the first Append.
func (j *Journal) Left() [][]byte { return j.left }

// Append makes records durable, all of them or, if it fails, none that counts.
func (j *Journal) Append(records [][]byte) error {
	var b []byte
	for _, r := range records {
		if len(r) > maxRecord {
			return fmt.Errorf("journal: a record of %d bytes is longer than %d MiB", len(r), maxRecord>>20)
		}
		b = j.frame(b, r)
	}
	if j.end+int64(len(b)) > maxJournal {
		return fmt.Errorf("journal: %d MiB of records wait for the state database; look why it cannot be written", maxJournal>>20)
	}
	f := j.files[j.current]
	_, err := f.WriteAt(b, j.end)
	if err == nil && j.power {
		err = syncData(f)
	}
	if err != nil {
		return j.store.explain(fmt.Errorf("journal: %w", err))
	}
	j.end += int64(len(b))
	j.left = nil
	return nil
}

// Turn has the next records go to the other file, so that those there are can be taken over. While the other file is held,
// because what was taken over last has not been dropped, it does nothing.
func (j *Journal) Turn() {
	if j.held {
		return
	}
	j.current, j.end, j.held = 1-j.current, 0, true
	j.turn++
}

// Drop says that the records from before the last Turn are in the database.
func (j *Journal) Drop() { j.held = false }

// A frame is a record in a file: a checksum of all that follows, the length of the record, the turn, the record.
const frameHead = 4 + 4 + 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (j *Journal) frame(b, record []byte) []byte {
	begin := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(record)))
	b = binary.BigEndian.AppendUint64(b, j.turn)
	b = append(b, record...)
	binary.BigEndian.PutUint32(b[begin:], crc32.Checksum(b[begin+4:], castagnoli))
	return b
}

// readJournal reads the records of a file up to the first that is not whole or was left by an earlier turn.
func readJournal(file io.Reader) (turn uint64, records [][]byte, err error) {
	r := bufio.NewReader(file)
	var head [frameHead]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return turn, records, ignoreEnd(err)
		}
		size, of := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint64(head[8:])
		if size > maxRecord || len(records) > 0 && of != turn {
			return turn, records, nil
		}
		record, err := io.ReadAll(io.LimitReader(r, int64(size))) // which trusts the length no further than the file goes
		if err != nil {
			return turn, records, err
		}
		sum := crc32.Update(crc32.Checksum(head[4:], castagnoli), castagnoli, record)
		if len(record) < int(size) || sum != binary.BigEndian.Uint32(head[:]) {
			return turn, records, nil
		}
		turn, records = of, append(records, record)
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// openJournal opens one file and gives it its room.
func openJournal(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < journalRoom {
		if _, err = f.WriteAt(make([]byte, journalRoom-info.Size()), info.Size()); err == nil {
			err = errors.Join(f.Sync(), syncNames(filepath.Dir(path)))
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (j *Journal) close() error {
	var errs []error
	for _, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
