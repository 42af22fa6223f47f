package embed

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
)

// The file of vectors: a magic word with a version, the number of dimensions, then records: the digest of the text, the
// scale, a byte for each number and a checksum. Records are only added; a torn one at the end is cut off.
const (
	filePrefix = "embeddings-"
	magic      = "hmdvec01"
	headBytes  = len(magic) + 4
	frameBytes = len(digest{}) + 4 + 4 // of a record, besides the numbers
)

// shelf keeps vectors by the digest of their text, in memory and in a file. It belongs to one goroutine.
type shelf struct {
	log       *slog.Logger
	path      string // "": memory only
	file      *os.File
	dimension int // 0 until the first vector
	vectors   map[digest]*vector
}

// openShelf reads what an earlier daemon kept for a model, and removes what belongs to other models. Trouble with the file
// is logged, and vectors are then kept in memory.
func openShelf(dir, url, model string, log *slog.Logger) *shelf {
	s := &shelf{log: log, vectors: map[digest]*vector{}}
	if dir == "" {
		return s
	}
	sum := sha256.Sum256([]byte(url + "\x00" + model))
	name := filePrefix + hex.EncodeToString(sum[:8])
	s.path = filepath.Join(dir, name)
	if err := s.open(dir, name); err != nil {
		s.giveUp(err)
	}
	return s
}

// giveUp goes on without a file.
func (s *shelf) giveUp(err error) {
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	s.log.Warn("embeddings: vectors are kept in memory only", "file", s.path, "error", err)
	s.path, s.file = "", nil
}

func (s *shelf) open(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	others, err := filepath.Glob(filepath.Join(dir, filePrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range others {
		if filepath.Base(path) != name {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if s.file, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	good, err := s.read(bufio.NewReaderSize(s.file, 1<<20))
	if err != nil {
		return err
	}
	if err := s.file.Truncate(good); err != nil {
		return err
	}
	_, err = s.file.Seek(good, io.SeekStart)
	return err
}

// read reads records for as long as they are whole and returns where the last one ends.
func (s *shelf) read(r io.Reader) (good int64, err error) {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, atEnd(err)
	}
	dimension := binary.LittleEndian.Uint32(head[len(magic):])
	if string(head[:len(magic)]) != magic || dimension == 0 || dimension > maxDimension {
		return 0, nil
	}
	s.dimension = int(dimension)
	good = int64(headBytes)
	record := make([]byte, frameBytes+s.dimension)
	for s.hasRoom() {
		if _, err := io.ReadFull(r, record); err != nil {
			return good, atEnd(err)
		}
		d, v, ok := parse(record)
		if !ok {
			break
		}
		s.vectors[d] = v
		good += int64(len(record))
	}
	return good, nil
}

func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func parse(record []byte) (d digest, v *vector, ok bool) {
	body := record[:len(record)-4]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(record[len(body):]) {
		return d, nil, false
	}
	copy(d[:], body)
	scale := math.Float32frombits(binary.LittleEndian.Uint32(body[len(d):]))
	numbers := body[len(d)+4:]
	v = &vector{values: make([]int8, len(numbers)), scale: scale}
	for i, b := range numbers {
		v.values[i] = int8(b)
	}
	return d, v, scale > 0 && scale <= 1
}

func appendRecord(b []byte, d digest, v *vector) []byte {
	from := len(b)
	b = append(b, d[:]...)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v.scale))
	for _, x := range v.values {
		b = append(b, byte(x))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
}

func (s *shelf) get(d digest) *vector { return s.vectors[d] }

// hasRoom reports whether another batch fits the bound on memory, and on the file.
func (s *shelf) hasRoom() bool {
	return len(s.vectors)*(s.dimension+frameBytes) < maxBytes
}

// add keeps vectors, which all have the same number of dimensions.
func (s *shelf) add(digests []digest, vectors []*vector) {
	var b []byte
	if s.dimension == 0 {
		s.dimension = len(vectors[0].values)
		b = s.head()
	}
	for i, d := range digests {
		if s.vectors[d] == nil {
			s.vectors[d] = vectors[i]
			b = appendRecord(b, d, vectors[i])
		}
	}
	if s.file == nil {
		return
	}
	if _, err := s.file.Write(b); err != nil {
		s.giveUp(err)
	}
}

func (s *shelf) head() []byte {
	return binary.LittleEndian.AppendUint32([]byte(magic), uint32(s.dimension))
}

// tidy drops the vectors of tools that are gone once they are more than those that are not.
func (s *shelf) tidy(c *catalog) {
	live := make(map[digest]*vector, len(c.digests))
	for _, d := range c.digests {
		if v := s.vectors[d]; v != nil {
			live[d] = v
		}
	}
	if len(s.vectors) <= 2*len(live)+batchSize {
		return
	}
	s.vectors = live
	if s.file == nil {
		return
	}
	if err := s.rewrite(); err != nil {
		s.giveUp(err)
	}
}

// rewrite makes the file anew and puts it in the place of the old one.
func (s *shelf) rewrite() (err error) {
	f, err := os.OpenFile(s.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(s.head()); err != nil {
		return err
	}
	var record []byte
	for d, v := range s.vectors {
		record = appendRecord(record[:0], d, v)
		if _, err := w.Write(record); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		return err
	}
	old := s.file
	s.file = f
	return old.Close()
}

func (s *shelf) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
