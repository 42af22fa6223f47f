package search

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// forwardFile is the forward index as it lies on disk beside bleve's: everything that preparing the documents gave. Its
// layout is little-endian and of fixed width, so that 100,000 tools load in a fraction of a second:
//
//	magic, version, key (of the lexicon and the weights), counts
//	texts: all terms, then all names, in one piece, so that they are one allocation
//	vocabulary: the length of each term
//	documents: for each the length of its name, hashes, verb, lengths, and the counts of what follows
//	pools: postings, words of names and labels
//	places of the documents in bleve's index
//	files of bleve's index, each with name, size and checksum
//	checksum of all that
const (
	forwardMagic   = "hsrch"
	forwardVersion = 2
)

var (
	errForward = errors.New("forward index is damaged")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

type forwardFile struct {
	key   uint64
	vocab *vocabulary
	docs  []*entry // without own name, source and description, which come with the catalog
	place []uint32
	files []indexFile

	counts [][3]int // of each document's terms and words of name and label, while it is read
}

// indexFile is a file of bleve's index as it was when it was built.
type indexFile struct {
	name string
	size uint64
	sum  uint32
}

func (f *forwardFile) encode() []byte {
	le := binary.LittleEndian
	out := append([]byte(forwardMagic), forwardVersion)
	out = le.AppendUint64(out, f.key)
	texts := len(out)
	out = le.AppendUint32(out, 0)
	for id := range f.vocab.size() {
		out = append(out, f.vocab.term(uint32(id))...)
	}
	for _, e := range f.docs {
		out = append(out, e.name...)
	}
	le.PutUint32(out[texts:], uint32(len(out)-texts-4))
	out = le.AppendUint32(out, uint32(f.vocab.size()))
	for id := range f.vocab.size() {
		out = le.AppendUint16(out, uint16(len(f.vocab.term(uint32(id)))))
	}
	out = le.AppendUint32(out, uint32(len(f.docs)))
	var terms, words uint32
	for _, e := range f.docs {
		out = le.AppendUint16(out, uint16(len(e.name)))
		out = le.AppendUint64(out, e.hash)
		out = le.AppendUint64(out, e.nameHash)
		out = le.AppendUint64(out, e.ownHash)
		out = append(out, byte(e.verb))
		for _, l := range e.lengths {
			out = le.AppendUint16(out, l)
		}
		out = le.AppendUint32(out, uint32(len(e.terms)))
		out = le.AppendUint16(out, uint16(len(e.nameSeq)))
		out = le.AppendUint16(out, uint16(len(e.srcSeq)))
		terms += uint32(len(e.terms))
		words += uint32(len(e.nameSeq) + len(e.srcSeq))
	}
	out = le.AppendUint32(out, terms)
	for _, e := range f.docs {
		for _, t := range e.terms {
			out = le.AppendUint32(out, t.term)
			out = le.AppendUint32(out, uint32(t.freq))
		}
	}
	out = le.AppendUint32(out, words)
	for _, e := range f.docs {
		for _, t := range e.nameSeq {
			out = le.AppendUint32(out, t)
		}
		for _, t := range e.srcSeq {
			out = le.AppendUint32(out, t)
		}
	}
	for _, p := range f.place {
		out = le.AppendUint32(out, p)
	}
	out = le.AppendUint32(out, uint32(len(f.files)))
	for _, file := range f.files {
		out = le.AppendUint16(out, uint16(len(file.name)))
		out = append(out, file.name...)
		out = le.AppendUint64(out, file.size)
		out = le.AppendUint32(out, file.sum)
	}
	return le.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

// forwardReader reads fixed-width values and remembers that the bytes ran out.
type forwardReader struct {
	b     []byte
	texts string
	bad   bool
}

var zeros [8]byte

func (r *forwardReader) take(n int) []byte {
	if n > len(r.b) {
		r.bad = true
		if n <= len(zeros) {
			return zeros[:n]
		}
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *forwardReader) u8() byte    { return r.take(1)[0] }
func (r *forwardReader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *forwardReader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *forwardReader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// text returns the next of the texts, which has n bytes.
func (r *forwardReader) text(n uint16) string {
	if int(n) > len(r.texts) {
		r.bad = true
		return ""
	}
	out := r.texts[:n]
	r.texts = r.texts[n:]
	return out
}

// count reads a number of things of at least size bytes each, of which there cannot be more than there are bytes.
func (r *forwardReader) count(size int) int {
	n := int(r.u32())
	if n > len(r.b)/size {
		r.bad = true
		return 0
	}
	return n
}

// decodeForward reads what encode wrote. It trusts nothing: every number that is used as an index is checked.
func decodeForward(b []byte) (*forwardFile, error) {
	const sum = 4
	if len(b) < len(forwardMagic)+1+sum || string(b[:len(forwardMagic)]) != forwardMagic {
		return nil, errForward
	}
	if v := b[len(forwardMagic)]; v != forwardVersion {
		return nil, fmt.Errorf("forward index has version %d, want %d", v, forwardVersion)
	}
	body := b[:len(b)-sum]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, errForward
	}
	r := &forwardReader{b: body[len(forwardMagic)+1:]}
	f := &forwardFile{key: r.u64(), vocab: newVocabulary()}
	r.texts = string(r.take(r.count(1)))
	if !r.vocabulary(f) || !r.documents(f) || !r.pools(f) || !r.index(f) {
		return nil, errForward
	}
	return f, nil
}

func (r *forwardReader) vocabulary(f *forwardFile) bool {
	n := r.count(2)
	f.vocab.ids = make(map[string]uint32, n)
	f.vocab.terms = make([]string, 0, n)
	for i := range n {
		term := r.text(r.u16())
		f.vocab.ids[term] = uint32(i)
		f.vocab.terms = append(f.vocab.terms, term)
	}
	return !r.bad && len(f.vocab.ids) == n
}

// documents reads the heads of the documents; pools reads their terms and words.
func (r *forwardReader) documents(f *forwardFile) bool {
	const head = 2 + 3*8 + 1 + 2*fields + 4 + 2 + 2
	n := r.count(head)
	entries := make([]entry, n)
	f.docs = make([]*entry, n)
	for i := range entries {
		e := &entries[i]
		f.docs[i] = e
		e.name = r.text(r.u16())
		e.hash, e.nameHash, e.ownHash = r.u64(), r.u64(), r.u64()
		e.verb = verbClass(r.u8())
		for l := range e.lengths {
			e.lengths[l] = r.u16()
		}
		terms, name, src := int(r.u32()), int(r.u16()), int(r.u16())
		if r.bad || terms > len(r.b)/8 || i > 0 && f.docs[i-1].name >= e.name {
			return false
		}
		f.counts = append(f.counts, [3]int{terms, name, src})
	}
	return true
}

func (r *forwardReader) pools(f *forwardFile) bool {
	vocab := uint32(f.vocab.size())
	postings := make([]posting, r.count(8))
	for i := range postings {
		postings[i] = posting{r.u32(), packed(r.u32())}
		if postings[i].term >= vocab {
			return false
		}
	}
	words := make([]uint32, r.count(4))
	for i := range words {
		if words[i] = r.u32(); words[i] >= vocab {
			return false
		}
	}
	for i, e := range f.docs {
		terms, name, src := f.counts[i][0], f.counts[i][1], f.counts[i][2]
		if terms > len(postings) || name+src > len(words) {
			return false
		}
		e.terms, postings = postings[:terms:terms], postings[terms:]
		e.nameSeq, words = words[:name:name], words[name:]
		e.srcSeq, words = words[:src:src], words[src:]
	}
	f.counts = nil
	return !r.bad && len(postings) == 0 && len(words) == 0
}

func (r *forwardReader) index(f *forwardFile) bool {
	if len(r.b)/4 < len(f.docs) {
		return false
	}
	f.place = make([]uint32, len(f.docs))
	for i := range f.place {
		if f.place[i] = r.u32(); int(f.place[i]) >= len(f.docs) {
			return false
		}
	}
	for range r.count(2 + 8 + 4) {
		f.files = append(f.files, indexFile{name: string(r.take(int(r.u16()))), size: r.u64(), sum: r.u32()})
	}
	return !r.bad && len(r.b) == 0 && r.texts == ""
}
