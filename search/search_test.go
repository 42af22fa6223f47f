package search_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/search"
)

func doc(source, own, description string) search.Document {
	return search.Document{Name: "mcp__" + source + "__" + own, OwnName: own, Source: source, Description: description}
}

// withFiller puts docs among so many others that the base index is needed.
func withFiller(docs ...search.Document) []search.Document {
	return append(manyDocs(700), docs...)
}

func TestNames(t *testing.T) {
	docs := []search.Document{
		doc("github", "create_issue", "Open a new issue."),
		doc("github", "list_issues", "List issues. create issue create issue create issue github create issue"),
		doc("gitlab", "createIssue", "Open a new issue."),
		doc("kb", "search", "Look things up."),
		doc("search", "documents", "Search search search."),
		doc("mairie", "réserver_salle", "Réserver une salle."),
	}
	cases := map[string]struct{ query, want string }{
		"the full name ranks first":                      {"mcp__github__create_issue", "mcp__github__create_issue"},
		"case does not matter in a full name":            {"MCP__GitHub__Create_Issue", "mcp__github__create_issue"},
		"space around a full name does not matter":       {"  mcp__github__create_issue\n", "mcp__github__create_issue"},
		"the own name ranks before others' words":        {"search", "mcp__kb__search"},
		"a full name works with other separators":        {"github create-issue", "mcp__github__create_issue"},
		"a full name works with single underscores":      {"mcp_gitlab_createIssue", "mcp__gitlab__createIssue"},
		"a full name works split into words":             {"gitlab create issue", "mcp__gitlab__createIssue"},
		"an own name in camelCase works as it stands":    {"createIssue", "mcp__gitlab__createIssue"},
		"a name with accents is found without them":      {"reserver salle", "mcp__mairie__réserver_salle"},
		"a name that is the query passes the confidence": {"mcp__kb__search", "mcp__kb__search"},
	}
	for _, filled := range []bool{false, true} {
		all := docs
		if filled {
			all = withFiller(docs...)
		}
		scope := newEngine(t, nil, all...).Corpus().Scope(nil)
		for name, c := range cases {
			t.Run(fmt.Sprintf("%s, %d tools", name, len(all)), func(t *testing.T) {
				g := scope.Search(search.Query{Text: c.query})
				if got := names(g); len(got) == 0 || got[0] != c.want || g.Weak {
					t.Errorf("%q found %q (weak %v), want %s first", c.query, got, g.Weak, c.want)
				}
			})
		}
	}
}

func TestSearch(t *testing.T) {
	cases := map[string]struct {
		docs  []search.Document
		query string
		want  []string
	}{
		"a word that every tool has is still a match": {
			[]search.Document{doc("github", "a", "x"), doc("github", "b", "y")}, "github",
			[]string{"mcp__github__a", "mcp__github__b"}},
		"one unknown word does not empty the answer": {
			[]search.Document{doc("tracker", "create_ticket", "Open a ticket.")}, "please create a ticket for Zbigniew 4711",
			[]string{"mcp__tracker__create_ticket"}},
		"a literal substring is the last resort": {
			[]search.Document{doc("s", "foobarbaz", "x")}, "oobarb",
			[]string{"mcp__s__foobarbaz"}},
		"a literal substring of a description in another case": {
			[]search.Document{doc("s", "t", "Emits QZXWVU-like frames.")}, "zxwv",
			[]string{"mcp__s__t"}},
		"nothing matches nothing": {
			[]search.Document{doc("s", "t", "x")}, "qqqqqq", []string{}},
		"an empty query matches nothing": {
			[]search.Document{doc("s", "t", "x")}, "  \n\t ", []string{}},
		"parameter names of inner levels are found": {
			[]search.Document{{Name: "mcp__s__t", Parameters: json.RawMessage(`{"properties":{"a":{"properties":{"webhook":{"type":"string"}}}}}`)}},
			"webhook", []string{"mcp__s__t"}},
		"keywords are found": {
			[]search.Document{{Name: "mcp__s__t", Keywords: []string{"telegram"}}}, "telegram", []string{"mcp__s__t"}},
		"an acronym finds what it stands for": {
			[]search.Document{doc("forge", "open_pull_request", "x"), doc("forge", "other", "y")}, "PR", []string{"mcp__forge__open_pull_request"}},
		"what an acronym stands for finds the acronym": {
			[]search.Document{doc("forge", "merge_pr", "x"), doc("forge", "other", "y")}, "pull request", []string{"mcp__forge__merge_pr"}},
		"a misspelt word finds its neighbour": {
			[]search.Document{doc("s", "calendar_list", "x"), doc("s", "other", "y")}, "calandar", []string{"mcp__s__calendar_list"}},
		"a compound is split": {
			[]search.Document{doc("s", "screen_recorder", "x"), doc("s", "other", "y")}, "screenrecorder", []string{"mcp__s__screen_recorder"}},
		"two words find their compound": {
			[]search.Document{doc("s", "add_webhook", "x"), doc("s", "other", "y")}, "web hook", []string{"mcp__s__add_webhook"}},
		"Japanese is found by bigrams": {
			[]search.Document{doc("s", "a", "会議室を予約します"), doc("s", "b", "天気を調べます")}, "予約したい", []string{"mcp__s__a"}},
		"Korean is found by bigrams": {
			[]search.Document{doc("s", "a", "도서를 검색합니다"), doc("s", "b", "날씨")}, "검색", []string{"mcp__s__a"}},
		"full-width letters are letters": {
			[]search.Document{doc("s", "a", "deploys"), doc("s", "b", "y")}, "ｄｅｐｌｏｙ", []string{"mcp__s__a"}},
		"Cyrillic is found in any case": {
			[]search.Document{doc("s", "a", "Найти посылку"), doc("s", "b", "y")}, "ПОСЫЛКУ", []string{"mcp__s__a"}},
		"ties are ordered by name": {
			[]search.Document{doc("s", "c_thing", "x"), doc("s", "a_thing", "x"), doc("s", "b_thing", "x")}, "thing",
			[]string{"mcp__s__a_thing", "mcp__s__b_thing", "mcp__s__c_thing"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			scope := newEngine(t, nil, c.docs...).Corpus().Scope(nil)
			if diff := cmp.Diff(c.want, names(scope.Search(search.Query{Text: c.query}))); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.query, diff)
			}
		})
	}
}

func TestTheOperatorsSynonymsAreUsed(t *testing.T) {
	docs := []search.Document{doc("s", "list_vehicles", "x"), doc("s", "list_people", "y")}
	e := newEngine(t, &search.Options{Synonyms: map[string][]string{"flotte": {"vehicles"}}}, docs...)
	if got := names(e.Corpus().Scope(nil).Search(search.Query{Text: "flotte"})); !slices.Equal(got, []string{"mcp__s__list_vehicles"}) {
		t.Errorf("found %q", got)
	}
	if _, err := search.New(&search.Options{Synonyms: map[string][]string{"...": {"x"}}}); err == nil || !strings.Contains(err.Error(), `"..."`) {
		t.Errorf("a synonym that is no word gave %v", err)
	}
}

func TestAQueryThatNothingServesIsWeak(t *testing.T) {
	docs := withFiller(doc("tracker", "create_ticket", "Open a ticket in a project."), doc("mail", "send_email", "Send a message."))
	scope := newEngine(t, nil, docs...).Corpus().Scope(nil)
	for query, weak := range map[string]bool{
		"create ticket":                    false,
		"send an email to Bob please":      false,
		"send a violin to the tuner":       true,
		"fold an origami crane in project": true,
	} {
		if g := scope.Search(search.Query{Text: query}); g.Weak != weak || len(g.Hits) == 0 {
			t.Errorf("%q: weak %v with %d hits, want weak %v", query, g.Weak, len(g.Hits), weak)
		}
	}
}

func TestAScopeRanksAsIfOnlyItsToolsExisted(t *testing.T) {
	set := corpus(t)
	docs := append(manyDocs(900), set.Docs...)
	whole := newEngine(t, nil, docs...)
	for label, include := range map[string]func(search.Document) bool{
		"one source":       func(d search.Document) bool { return d.Source == "tracker" },
		"half of all":      func(d search.Document) bool { return len(d.Name)%2 == 0 },
		"all but a source": func(d search.Document) bool { return d.Source != "forge" },
		"nothing":          func(search.Document) bool { return false },
	} {
		in := map[string]bool{}
		var alone []search.Document
		for _, d := range docs {
			if include(d) {
				in[d.Name] = true
				alone = append(alone, d)
			}
		}
		restricted := whole.Corpus().Scope(func(name string) bool { return in[name] })
		if restricted.Len() != len(alone) {
			t.Errorf("%s: the scope has %d tools, want %d", label, restricted.Len(), len(alone))
		}
		only := newEngine(t, nil, alone...).Corpus().Scope(nil)
		for _, q := range set.Queries {
			want, got := only.Search(search.Query{Text: q.Query}), restricted.Search(search.Query{Text: q.Query})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %q (-alone +scoped):\n%s", label, q.Query, diff)
			}
		}
	}
}

func TestExtraToolsRankInTheSamePass(t *testing.T) {
	for _, docs := range [][]search.Document{{doc("mail", "send_email", "Send a message.")}, withFiller(doc("mail", "send_email", "Send a message."))} {
		e := newEngine(t, nil, docs...)
		extra := []search.Document{
			{Name: "connectors__gmail__SEND_EMAIL", Source: "gmail", Description: "Send an email with Gmail."},
			{Name: "connectors__zorgle__MAKE_ZORG", Source: "zorgle", Description: "Make a zorg."},
		}
		scope := e.Corpus().Scope(nil)
		g := scope.Search(search.Query{Text: "gmail send email", Extra: extra})
		if len(g.Hits) < 2 || g.Hits[0].Name != extra[0].Name || !g.Hits[0].Extra || g.Hits[1].Name != "mcp__mail__send_email" {
			t.Errorf("%d tools: found %+v", len(docs), g.Hits)
		}
		if got := names(scope.Search(search.Query{Text: "make zorg", Extra: extra, Limit: 1})); got[0] != extra[1].Name {
			t.Errorf("%d tools: a word that only an extra tool has found %q", len(docs), got)
		}
		if got := names(scope.Search(search.Query{Text: "zorg"})); slices.Contains(got, extra[1].Name) {
			t.Errorf("%d tools: an extra tool of an earlier query is still found", len(docs))
		}
	}
}

func TestAnExtraToolThatMeetsMoreIsWithinTheLimit(t *testing.T) {
	var docs []search.Document
	for i := range 20 {
		docs = append(docs, doc(fmt.Sprintf("calendar%d", i), "create_event", "Create event."))
	}
	extra := []search.Document{{Name: "connectors__x__T", Source: "x", Description: "Long text about nothing. " +
		strings.Repeat("and more words that make this description long ", 20) + " create an event in outlook"}}
	g := newEngine(t, nil, docs...).Corpus().Scope(nil).Search(search.Query{Text: "create event outlook", Extra: extra, Limit: 3})
	if got := names(g); len(got) != 3 || !slices.Contains(got, extra[0].Name) {
		t.Errorf("found %q", got)
	}
}

func TestWhatWasLearnedNeverLiftsAToolAboveAnExactName(t *testing.T) {
	docs := withFiller(doc("a", "send_report", "Send a report."), doc("b", "send_report_now", "Send a report now."), doc("c", "report_sender", "Send a report."))
	scope := newEngine(t, nil, docs...).Corpus().Scope(nil)
	liar := func(name string) float64 {
		if name == "mcp__c__report_sender" {
			return 1e9
		}
		return 0
	}
	if got := names(scope.Search(search.Query{Text: "send report for me", Usage: liar})); got[0] != "mcp__c__report_sender" {
		t.Errorf("usage has no effect: %q", got)
	}
	for _, exact := range []string{"mcp__a__send_report", "send_report"} {
		if got := names(scope.Search(search.Query{Text: exact, Usage: liar})); got[0] != "mcp__a__send_report" {
			t.Errorf("%s: %q ranks first", exact, got[0])
		}
	}
}

func TestANameThatRepeatsItselfGainsNothing(t *testing.T) {
	scope := newEngine(t, nil,
		doc("github", "create_issue", "Create an issue."),
		doc("a", "create_issue_create_issue_create_issue_create_issue", "Create an issue."),
	).Corpus().Scope(nil)
	if got := names(scope.Search(search.Query{Text: "create an issue in the tracker"})); got[0] != "mcp__github__create_issue" {
		t.Errorf("%q ranks first", got[0])
	}
}

func TestBadQueriesAreAnsweredInTime(t *testing.T) {
	docs := append(manyDocs(3000), corpus(t).Docs...)
	e := newEngine(t, nil, docs...)
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 10_000)
	for i := range noise {
		noise[i] = byte(r.IntN(256))
	}
	var words strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&words, "Word%dunknown create list issue thing%d. ", i, i)
	}
	for name, q := range map[string]string{
		"only stop words": "how do I do this with the", "only emoji": "🎉🎉🔥👩‍👩‍👧", "a regular expression": `^(a+)+$|[[:alpha:]]{1,1000}`,
		"control characters": "\x00\x01\x02\x1b[31m\x7f", "noise": string(noise), "10,000 letters": strings.Repeat("a", 10_000),
		"many words": words.String(), "quotes that never close": strings.Repeat(`"'`, 5000), "one rune": "界", "combining marks": strings.Repeat("\u0301", 9000),
		"capital letters": strings.Repeat("aB", 5000), "a megabyte": strings.Repeat("create issue ", 80_000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			g := e.Corpus().Scope(nil).Search(search.Query{Text: q})
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %v", took)
			}
			if len(g.Hits) > 5 {
				t.Errorf("%d hits", len(g.Hits))
			}
		})
	}
}

func TestTheExplanationAddsUp(t *testing.T) {
	scope := newEngine(t, nil, corpus(t).Docs...).Corpus().Scope(nil)
	g := scope.Search(search.Query{Text: "create a ticket about payments", Explain: true})
	x := g.Hits[0].Explain
	sum := 0.0
	for _, w := range x.Words {
		sum += w.Score
	}
	if d := sum - x.First; d > 1e-3 || d < -1e-3 {
		t.Errorf("words add up to %v, BM25F is %v", sum, x.First)
	}
	met := map[string][]string{}
	for _, w := range x.Words {
		met[w.Word] = w.Fields
		if (w.Found == "") != (w.Score == 0) || (w.Found == "") != (len(w.Fields) == 0) {
			t.Errorf("%+v", w)
		}
	}
	if !slices.Contains(met["create"], "name") || !slices.Contains(met["ticket"], "name") || met["payments"] != nil {
		t.Errorf("words were found in %q", met)
	}
	if g.Met < x.Met || g.Line <= 0 || g.Weak != (g.Met < g.Line) {
		t.Errorf("%+v", g)
	}
}
