package search

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
)

// Document is one tool as search sees it.
type Document struct {
	Name        string          // unique full name, e.g. mcp__github__create_issue
	OwnName     string          // the provider's own name for it, e.g. create_issue; "" derives it from Name
	Source      string          // the source's label, e.g. github
	Description string          // whole; the first sentence counts more than the rest
	Parameters  json.RawMessage // JSON Schema of the arguments; may be hostile or malformed
	Keywords    []string        // the author's own
}

// Fields of a tool, each with its own weight and length normalisation.
const (
	fieldName = iota
	fieldSource
	fieldFirst
	fieldRest
	fieldParam
	fieldParamText
	fieldKeyword
	fields
)

// Bounds on the texts of one document.
const (
	maxDescription   = 8 << 10 // bytes of a description that are indexed
	maxFirstSentence = 400     // bytes of the first sentence
	maxKeywords      = 32
	maxNameBytes     = 512 // of a name, label or keyword
)

// entry is a document prepared for ranking: what of it is compared, in numbers.
type entry struct {
	name, own, source, description string

	hash     uint64 // of the document, to see whether it changed
	terms    []posting
	nameSeq  []uint32 // words of the own name, in order, without extras
	srcSeq   []uint32 // words of the source's label
	lengths  [fields]uint16
	verb     verbClass
	nameHash uint64 // of the squashed full name, without a leading "mcp"
	ownHash  uint64 // of the squashed own name
}

// posting says how often a term stands in each field of one document.
type posting struct {
	term uint32
	freq packed
}

// packed holds a small count for each field.
type packed uint32

var (
	packedShift = [fields]uint{0, 4, 7, 12, 18, 23, 29}
	packedMax   = [fields]packed{15, 7, 31, 63, 31, 63, 7}
)

func (p packed) get(field int) packed { return p >> packedShift[field] & packedMax[field] }

func (p packed) inc(field int) packed {
	if p.get(field) == packedMax[field] {
		return p
	}
	return p + 1<<packedShift[field]
}

// digest identifies the content of a document, across restarts too. It uses buf and returns it for the next one.
func (d *Document) digest(buf []byte) (uint64, []byte) {
	buf = buf[:0]
	for _, s := range [...]string{d.Name, d.OwnName, d.Source, d.Description} {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	buf = binary.AppendUvarint(buf, uint64(len(d.Parameters)))
	buf = append(buf, d.Parameters...)
	for _, k := range d.Keywords {
		buf = binary.AppendUvarint(buf, uint64(len(k)))
		buf = append(buf, k...)
	}
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[:]), buf
}

// digests computes the digests of all documents, on two processors.
func digests(docs []Document) []uint64 {
	out := make([]uint64, len(docs))
	half := len(docs) / 2
	hash := func(from, to int) {
		var buf []byte
		for i := from; i < to; i++ {
			out[i], buf = docs[i].digest(buf)
		}
	}
	var other sync.WaitGroup
	other.Go(func() { hash(0, half) })
	hash(half, len(docs))
	other.Wait()
	return out
}

// ownName returns the part of a full name that the provider chose, and the part before it.
func (d *Document) ownName() (own, prefix string) {
	rest := strings.TrimPrefix(d.Name, "mcp__")
	if d.OwnName != "" {
		return d.OwnName, strings.TrimSuffix(rest, d.OwnName)
	}
	if before, after, ok := strings.Cut(rest, "__"); ok && after != "" {
		return after, before
	}
	return rest, ""
}

// preparer turns documents into entries. It owns the vocabulary that it adds to and remembers the stems of words it has
// seen, so it serves one goroutine.
type preparer struct {
	lex   *lexicon
	vocab *vocabulary
	stems map[string]uint32 // word -> term

	freq  map[uint32]packed
	entry *entry
}

func newPreparer(lex *lexicon, v *vocabulary) *preparer {
	return &preparer{lex: lex, vocab: v, stems: map[string]uint32{}, freq: map[uint32]packed{}}
}

func (p *preparer) term(word string) uint32 {
	id, ok := p.stems[word]
	if !ok {
		id = p.vocab.add(stem(word))
		p.stems[strings.Clone(word)] = id
	}
	return id
}

func (p *preparer) add(field int, text string) {
	keepStops := field == fieldName || field == fieldSource || field == fieldKeyword || field == fieldParam
	n := 0
	eachWord(text, func(word string, extra bool) {
		if !keepStops && p.lex.stop[word] {
			return
		}
		id := p.term(word)
		if field != fieldName || p.freq[id].get(fieldName) == 0 { // a name that repeats a word says no more
			p.freq[id] = p.freq[id].inc(field)
		}
		if extra {
			return
		}
		n++
		switch field {
		case fieldName:
			p.entry.nameSeq = append(p.entry.nameSeq, id)
			if p.entry.verb == verbNone {
				p.entry.verb = p.lex.verbs[word]
			}
		case fieldSource:
			if !slices.Contains(p.entry.srcSeq, id) {
				p.entry.srcSeq = append(p.entry.srcSeq, id)
			}
		}
	})
	p.entry.lengths[field] = uint16(min(int(p.entry.lengths[field])+n, math.MaxUint16))
}

// prepare makes the entry of a document. The entry keeps the document's strings but not its schema.
func (p *preparer) prepare(d *Document, hash uint64) *entry {
	own, prefix := d.ownName()
	e := &entry{name: d.Name, own: own, source: d.Source, description: d.Description, hash: hash}
	p.entry = e
	clear(p.freq)

	p.add(fieldName, cut(own, maxNameBytes))
	p.add(fieldSource, cut(d.Source, maxNameBytes))
	if squash(prefix) != squash(d.Source) {
		p.add(fieldSource, cut(prefix, maxNameBytes))
	}
	first, rest := firstSentence(cut(d.Description, maxDescription))
	p.add(fieldFirst, first)
	p.add(fieldRest, rest)
	walkSchema(d.Parameters,
		func(name string) { p.add(fieldParam, name) },
		func(text string) { p.add(fieldParamText, text) })
	for _, k := range d.Keywords[:min(len(d.Keywords), maxKeywords)] {
		p.add(fieldKeyword, cut(k, maxNameBytes))
	}

	e.terms = make([]posting, 0, len(p.freq))
	for id, f := range p.freq {
		e.terms = append(e.terms, posting{id, f})
	}
	slices.SortFunc(e.terms, func(a, b posting) int { return cmp.Compare(a.term, b.term) })
	e.nameSeq, e.srcSeq = slices.Clip(e.nameSeq), slices.Clip(e.srcSeq)
	e.nameHash, e.ownHash = nameHash(d.Name), nameHash(own)
	return e
}

// from returns the entry with the strings of the document that it was made of; one that was read from disk lacks them.
func (e *entry) from(d *Document) *entry {
	if e.own == "" {
		e.own, _ = d.ownName()
		e.source, e.description = d.Source, d.Description
	}
	return e
}

// firstSentence cuts a description after its first sentence. "e.g.", "i.e.", "etc." and "vs." end none; a blank line,
// a line break after enough text and an ideographic full stop do.
func firstSentence(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	for i := 0; i < len(text); i++ {
		if i >= maxFirstSentence {
			head := cut(text, i)
			return head, text[len(head):]
		}
		switch c := text[i]; {
		case c == '\n':
			return text[:i], text[i+1:]
		case (c == '.' || c == '!' || c == '?') && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n'):
			if c == '.' && isAbbreviation(text[:i]) {
				continue
			}
			return text[:i+1], text[i+1:]
		case strings.HasPrefix(text[i:], "。"):
			return text[:i], text[i+len("。"):]
		}
	}
	return text, ""
}

func isAbbreviation(before string) bool {
	word := strings.ToLower(before[strings.LastIndexAny(before, " (\n")+1:])
	switch word {
	case "e.g", "i.e", "etc", "vs", "cf", "incl", "approx":
		return true
	}
	return false
}
