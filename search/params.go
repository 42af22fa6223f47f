package search

// params are the constants of the ranking, chosen on whole sets of judged queries (docs/design, search measurements).
type params struct {
	k1     float32         // saturation, one for all fields together
	weight [fields]float32 // of a field
	norm   [fields]float32 // how far a field's length counts, 0..1

	weak, argument, unknownName float32 // share of a query word's weight that is left
	synonym, onlySynonym        float32 // share of a synonym's, and when the word itself is in no tool
	compound, fuzzy, camelPart  float32 // share of a word's halves, of a neighbour in spelling, and of a part of a known compound

	clause     float32 // share of a tool's score that comes from its place within the sentence it serves best
	clauseInfo float32 // exponent with which the information of a sentence counts against that of the fullest one
	clauseMin  float32 // share of the fullest sentence's information below which a sentence asks for nothing

	rerank                int     // how many of the best the second pass looks at
	nameShare             float32 // for a tool's own name being asked for whole
	verbSame, verbOther   float32
	source, pair          float32
	coverage              float32 // exponent of the met share of the query
	weakLine, weakPerWord float32 // confidence below which an answer is weak, and its fall for each word beyond four
	weakFloor             float32
	nameGrade             [gradeExact + 1]float32 // factor for near-exact names; exact ones rank first anyway
}

var ranking = params{
	k1:     1.5,
	weight: [fields]float32{1.9, 2.1, 1.2, .3, 1.05, .25, 1.4},
	norm:   [fields]float32{.48, .47, .8, .7, .62, .56, .5},

	weak: .9, argument: .13, unknownName: .15,
	synonym: .62, onlySynonym: .72,
	compound: .8, fuzzy: .6, camelPart: .45,

	nameShare: .64,
	verbSame:  .25, verbOther: .12,
	source: .2, pair: .35,
	coverage: .4,
	clause:   .5, clauseInfo: .1, clauseMin: .13,

	rerank:   200,
	weakLine: .48, weakPerWord: .07, weakFloor: .1,
	nameGrade: [...]float32{1, 1.5, 1.5, 2, 2},
}
