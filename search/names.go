package search

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
)

// nameHash hashes the squashed form of a name, so that separators, case and a leading "mcp__" make no difference.
func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(squash(strings.TrimPrefix(strings.ToLower(name), "mcp__"))))
	return h.Sum64()
}

// Grades of agreement between a query and a tool's name, the best first in order of rank.
const (
	gradeNone  = iota
	gradeNear  // the own name with other separators, or split into words
	gradeFull  // the full name with other separators, or split into words
	gradeOwn   // the own name
	gradeExact // the full name
)

// gradeName compares a trimmed query with a tool's names; hash is the query's nameHash.
func (e *entry) gradeName(query string, hash uint64) int {
	switch {
	case hash != e.nameHash && hash != e.ownHash:
		return gradeNone
	case strings.EqualFold(query, e.name):
		return gradeExact
	case strings.EqualFold(query, e.own):
		return gradeOwn
	case hash == e.nameHash:
		return gradeFull
	default:
		return gradeNear
	}
}

// nameIndex finds documents by the hash of a name.
type nameIndex []nameRef

type nameRef struct {
	hash uint64
	doc  uint32
}

func newNameIndex(docs []*entry) nameIndex {
	refs := make(nameIndex, 0, 2*len(docs))
	for i, e := range docs {
		refs = append(refs, nameRef{e.nameHash, uint32(i)})
		if e.ownHash != e.nameHash {
			refs = append(refs, nameRef{e.ownHash, uint32(i)})
		}
	}
	slices.SortFunc(refs, func(a, b nameRef) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.doc, b.doc))
	})
	return refs
}

// find returns the documents one of whose names has the hash.
func (x nameIndex) find(hash uint64) []nameRef {
	lo, _ := slices.BinarySearchFunc(x, hash, func(r nameRef, h uint64) int { return cmp.Compare(r.hash, h) })
	hi := lo
	for hi < len(x) && x[hi].hash == hash {
		hi++
	}
	return x[lo:hi]
}
