package search

import "maps"

// vocabulary numbers terms. It is a chain: a large immutable root, and on top of it small layers with the terms that
// later documents brought. A layer is written only before it is published; readers take no lock.
type vocabulary struct {
	parent *vocabulary
	ids    map[string]uint32
	terms  []string // terms of this layer; terms[i] has the number first+i
	first  uint32
}

func newVocabulary() *vocabulary { return &vocabulary{ids: map[string]uint32{}} }

// extend returns a layer on top of v to which terms may be added.
func (v *vocabulary) extend() *vocabulary {
	return &vocabulary{parent: v, ids: map[string]uint32{}, first: uint32(v.size())}
}

func (v *vocabulary) size() int { return int(v.first) + len(v.terms) }

func (v *vocabulary) lookup(term string) (uint32, bool) {
	for l := v; l != nil; l = l.parent {
		if id, ok := l.ids[term]; ok {
			return id, true
		}
	}
	return 0, false
}

func (v *vocabulary) term(id uint32) string {
	for id < v.first {
		v = v.parent
	}
	return v.terms[id-v.first]
}

func (v *vocabulary) add(term string) uint32 {
	if id, ok := v.lookup(term); ok {
		return id
	}
	id := uint32(v.size())
	v.ids[term] = id
	v.terms = append(v.terms, term)
	return id
}

// maxLayers bounds the length of the chain, and so the cost of a lookup.
const maxLayers = 4

// flat returns v, or one layer that holds all terms of v if the chain has become long.
func (v *vocabulary) flat() *vocabulary {
	layers := 0
	for l := v; l != nil; l = l.parent {
		layers++
	}
	if layers <= maxLayers {
		return v
	}
	// The layers above the root are small: fold them into one and leave the root alone.
	root := v
	for root.parent != nil {
		root = root.parent
	}
	folded := root.extend()
	for id := root.size(); id < v.size(); id++ {
		folded.terms = append(folded.terms, v.term(uint32(id)))
	}
	for l := v; l != root; l = l.parent {
		maps.Copy(folded.ids, l.ids)
	}
	return folded
}

// each calls fn for every term until fn returns false.
func (v *vocabulary) each(fn func(id uint32, term string) bool) {
	for l := v; l != nil; l = l.parent {
		for i, t := range l.terms {
			if !fn(l.first+uint32(i), t) {
				return
			}
		}
	}
}
