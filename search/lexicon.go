package search

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

//go:embed lexicon/*.txt
var lexiconFiles embed.FS

// verbClass says what a verb does to its object.
type verbClass uint8

const (
	verbNone verbClass = iota
	verbMake
	verbRead
	verbChange
	verbRemove
	verbSend
	verbRun
)

var verbClasses = map[string]verbClass{
	"make": verbMake, "read": verbRead, "change": verbChange, "remove": verbRemove, "send": verbSend, "run": verbRun,
}

// lexicon is what search knows about words. Stop words, weak words and verbs are looked up by the word as it stands,
// synonyms by the stem.
type lexicon struct {
	stop     map[string]bool
	weak     map[string]bool
	verbs    map[string]verbClass
	synonyms map[string][]phrase  // single word -> what stands for it
	phrases  map[string][]replace // first word of a phrase -> the phrase and what stands for it
}

// phrase is a sequence of stems.
type phrase []string

type replace struct {
	phrase phrase
	by     []phrase
}

// Synonyms are the built-in lexicon with somebody's additions. They are immutable and change only how queries are read, so
// that one corpus serves any number of them.
type Synonyms struct{ lex *lexicon }

// NewSynonyms adds to the built-in lexicon, as Options.Synonyms does.
func NewSynonyms(extra map[string][]string) (*Synonyms, error) {
	lex, err := loadLexicon(extra)
	if err != nil {
		return nil, err
	}
	return &Synonyms{lex}, nil
}

// maxSynonyms bounds what an operator's list may add to one word.
const maxSynonyms = 24

// loadLexicon reads the embedded files and adds the operator's synonyms (word or phrase -> words or phrases, one way).
func loadLexicon(extra map[string][]string) (*lexicon, error) {
	l := &lexicon{
		stop: map[string]bool{}, weak: map[string]bool{}, verbs: map[string]verbClass{},
		synonyms: map[string][]phrase{}, phrases: map[string][]replace{},
	}
	words := func(into map[string]bool) func(string) error {
		return func(line string) error {
			for _, w := range strings.Fields(line) {
				into[w] = true
			}
			return nil
		}
	}
	for file, read := range map[string]func(string) error{
		"stop.txt": words(l.stop), "weak.txt": words(l.weak), "verbs.txt": l.readVerbs, "synonyms.txt": l.readSynonyms,
	} {
		if err := eachLine(lexiconFiles, "lexicon/"+file, read); err != nil {
			return nil, err
		}
	}
	for _, from := range slices.Sorted(maps.Keys(extra)) {
		for _, to := range extra[from] {
			if err := l.addSynonym(from, to); err != nil {
				return nil, fmt.Errorf("synonyms of %q: %w", from, err)
			}
		}
	}
	return l, nil
}

// eachLine calls read with every line of a file that is neither blank nor a comment.
func eachLine(fsys fs.FS, name string, read func(string) error) error {
	f, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("open lexicon: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line, _, _ := strings.Cut(sc.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := read(line); err != nil {
			return fmt.Errorf("%s line %d: %w", name, n, err)
		}
	}
	return sc.Err()
}

func (l *lexicon) readVerbs(line string) error {
	class, verbs, ok := strings.Cut(line, ":")
	if !ok || verbClasses[class] == verbNone {
		return fmt.Errorf("%q does not begin with a class of verbs and a colon", line)
	}
	for _, v := range strings.Fields(verbs) {
		l.verbs[v] = verbClasses[class]
	}
	return nil
}

func (l *lexicon) readSynonyms(line string) error {
	group := strings.Split(line, ",")
	if len(group) < 2 {
		return fmt.Errorf("%q is a group of one", line)
	}
	for _, from := range group {
		for _, to := range group {
			if from == to {
				continue
			}
			if err := l.addSynonym(from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func stems(text string) phrase {
	var p phrase
	eachWord(text, func(w string, extra bool) {
		if !extra {
			p = append(p, stem(w))
		}
	})
	return p
}

func (l *lexicon) addSynonym(from, to string) error {
	f, t := stems(from), stems(to)
	if len(f) == 0 || len(t) == 0 || len(f) > maxPhrase || len(t) > maxPhrase {
		return fmt.Errorf("%q and %q must each be one to %d words", from, to, maxPhrase)
	}
	if slices.Equal(f, t) {
		return nil
	}
	same := func(p phrase) bool { return slices.Equal(p, t) }
	if len(f) == 1 {
		if old := l.synonyms[f[0]]; len(old) < maxSynonyms && !slices.ContainsFunc(old, same) {
			l.synonyms[f[0]] = append(old, t)
		}
		return nil
	}
	list := l.phrases[f[0]]
	i := slices.IndexFunc(list, func(r replace) bool { return slices.Equal(r.phrase, f) })
	if i < 0 {
		list, i = append(list, replace{phrase: f}), len(list)
	}
	if len(list[i].by) < maxSynonyms && !slices.ContainsFunc(list[i].by, same) {
		list[i].by = append(list[i].by, t)
	}
	l.phrases[f[0]] = list
	return nil
}
