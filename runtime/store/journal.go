package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
)

const (
	// journalRoom is what each file of a journal has from the beginning, in bytes: to write where a file ends already
	// takes the disk much longer than to write inside it.
	journalRoom = 1 << 20
	// maxJournal bounds what one file of a journal holds, in bytes.
	maxJournal = 64 << 20
	// maxRecord bounds one record of a journal, in bytes.
	maxRecord = 16 << 20
	// spareFrames is how much room an append keeps for the next one, in bytes.
	spareFrames = 1 << 20
	// maxTurn is beyond what any journal gets to. A file that says more is damaged, and nothing would come after it.
	maxTurn = 1 << 62
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
	oldest  int    // of the files, as they were when they were opened
	begun   bool   // what there was is overwritten
	current int    // the file that is written
	end     int64  // of what it holds
	sum     uint32 // the checksum of what it holds
	turn    uint64 // of the current file; it only grows
	held    bool   // the other file has records that are nowhere else
	frames  []byte // empty: the room of the last append, to be used again
}

// Journal opens the journal of a name, which its files begin with, and makes it where it is missing. What it holds survives
// what the writer's transactions survive. A journal that is open already, in whatever process, is refused, as is what is no
// ordinary file.
func (w *Writer) Journal(name string) (*Journal, error) {
	s := w.store
	j := &Journal{store: s, power: w.power}
	s.mu.Lock()
	s.journals = append(s.journals, j) // before it is whole, so that the store closes what there is of it
	s.mu.Unlock()
	var turns [2]uint64
	for i := range j.files {
		f, err := openJournal(filepath.Join(s.dir, fmt.Sprintf("%s-%d.journal", name, i)))
		if err != nil {
			return nil, s.explain(fmt.Errorf("journal: %w", err))
		}
		j.files[i] = f
		for first, err := range readJournal(j.content(i)) {
			if err != nil {
				return nil, s.explain(fmt.Errorf("journal %s: %w", f.Name(), err))
			}
			turns[i] = first.turn
			break
		}
	}
	if turns[1] < turns[0] {
		j.oldest = 1
	}
	j.turn = max(turns[0], turns[1]) + 1
	return j, nil
}

// Left are the records that were there when the journal was opened, oldest first: those that nobody took over, and before
// them such that somebody did. They are gone with the first Append. An error, of the disk, is the last that is yielded.
func (j *Journal) Left() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, i := range [...]int{j.oldest, 1 - j.oldest} {
			if j.begun {
				return
			}
			for f, err := range readJournal(j.content(i)) {
				if err != nil {
					err = j.store.explain(fmt.Errorf("journal %s: %w", j.files[i].Name(), err))
				}
				if !yield(f.record, err) {
					return
				}
			}
		}
	}
}

func (j *Journal) content(i int) io.Reader { return io.NewSectionReader(j.files[i], 0, maxJournal) }

// Append makes records durable, all of them or, if it fails, none that counts, as far as the disk lets what was written of
// them be undone. A record of more than 16 MiB is refused, and what makes the file longer than 64 MiB, until the next Turn.
func (j *Journal) Append(records [][]byte) error {
	b, sum := j.frames[:0], j.sum
	for _, r := range records {
		if len(r) > maxRecord {
			return fmt.Errorf("journal: a record of %d bytes is longer than %d MiB", len(r), maxRecord>>20)
		}
		b, sum = frame(b, sum, j.turn, r)
	}
	if cap(b) <= spareFrames {
		j.frames = b
	}
	if j.end+int64(len(b)) > maxJournal {
		return fmt.Errorf("journal: %d MiB of records wait for the state database; look why it cannot be written", maxJournal>>20)
	}
	f := j.files[j.current]
	j.begun = true
	_, err := f.WriteAt(b, j.end)
	if err == nil && j.power {
		err = syncData(f)
	}
	if err != nil {
		clear(b)
		_, undo := f.WriteAt(b, j.end)
		return j.store.explain(fmt.Errorf("journal: %w", errors.Join(err, undo)))
	}
	j.end, j.sum = j.end+int64(len(b)), sum
	return nil
}

// Turn has the next records go to the other file, so that those there are can be taken over. While the other file is held,
// because what was taken over last has not been dropped, it does nothing.
func (j *Journal) Turn() {
	if j.held {
		return
	}
	j.current, j.end, j.sum, j.held = 1-j.current, 0, 0, true
	j.turn++
}

// Drop says that the records from before the last Turn are in the database.
func (j *Journal) Drop() { j.held = false }

// A frame is a record in a file: a checksum, the length of the record, the turn, the record. The checksum is of all that
// precedes and follows it in the file, so that a frame that an append which failed left behind counts for nothing after another.
const frameHead = 4 + 4 + 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame appends the frame of a record to b; sum is the checksum of the frame before, and of this one.
func frame(b []byte, sum uint32, turn uint64, record []byte) ([]byte, uint32) {
	begin := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(record)))
	b = binary.BigEndian.AppendUint64(b, turn)
	b = append(b, record...)
	sum = crc32.Update(sum, castagnoli, b[begin+4:])
	binary.BigEndian.PutUint32(b[begin:], sum)
	return b, sum
}

// framed is what a frame holds.
type framed struct {
	turn   uint64
	record []byte
}

// readJournal reads the records of a file up to the first that is not whole or was left by an earlier turn.
func readJournal(file io.Reader) iter.Seq2[framed, error] {
	return func(yield func(framed, error) bool) {
		r := bufio.NewReader(file)
		var head [frameHead]byte
		var sum uint32
		var turn uint64
		for first := true; ; first = false {
			if _, err := io.ReadFull(r, head[:]); err != nil {
				fail(yield, err)
				return
			}
			size, of := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint64(head[8:])
			if size > maxRecord || of > maxTurn || !first && of != turn {
				return
			}
			record := make([]byte, size)
			if _, err := io.ReadFull(r, record); err != nil {
				fail(yield, err)
				return
			}
			sum = crc32.Update(crc32.Update(sum, castagnoli, head[4:]), castagnoli, record)
			if sum != binary.BigEndian.Uint32(head[:]) {
				return
			}
			turn = of
			if !yield(framed{of, record}, nil) {
				return
			}
		}
	}
}

// fail yields what the disk says; the end of the file is no fault.
func fail(yield func(framed, error) bool, err error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		yield(framed{}, err)
	}
}

// openJournal opens one file for this process alone and gives it its room.
func openJournal(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // a link may lead to anybody's file
		return nil, fmt.Errorf("%s is no ordinary file: move it away", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := prepare(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func prepare(f *os.File) error {
	if err := lockFile(f); err != nil {
		if isHeld(err) {
			err = errors.New("another hermesd has it open: stop that one")
		}
		return fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if room := journalRoom - info.Size(); room > 0 {
		if _, err := f.WriteAt(make([]byte, room), info.Size()); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), syncNames(filepath.Dir(f.Name()))) // always: who made it may have been killed before he did
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
