package learning_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/runtime/daemon/learning"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/store"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
	"github.com/hermesd/hermesd/search/searchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a search engine whose searches and calls a recorder sees.
type world struct {
	*learning.Recorder
	t      *testing.T
	dir    string
	store  *store.Store
	engine *search.Engine
	stop   func()
}

func newWorld(t *testing.T, docs []search.Document) *world {
	t.Helper()
	engine, err := search.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	engine.Update(docs)
	w := &world{t: t, dir: t.TempDir(), engine: engine}
	w.open()
	t.Cleanup(func() {
		w.close()
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// open begins anew with what is in the database.
func (w *world) open() {
	w.t.Helper()
	s, err := store.Open(w.dir, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	writer, err := s.Writer(false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
	w.Recorder, err = learning.New(w.t.Context(), &learning.Options{Database: writer, Terms: w.engine.Terms, Agents: []string{"desk", "other"}})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	recorder := w.Recorder
	go func() { ended <- recorder.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) close() {
	w.stop()
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
}

// reopen writes everything that was learned and reads it back.
func (w *world) reopen() {
	w.close()
	w.open()
}

func (w *world) search(agent, session string, limit int, queries ...string) []search.Group {
	groups := make([]search.Group, len(queries))
	for i, q := range queries {
		groups[i] = w.engine.Corpus().Scope(nil).Search(search.Query{Text: q, Limit: limit, Usage: w.Usage(agent, q)})
	}
	w.Searched(agent, session, queries, groups)
	return groups
}

func (w *world) rows() (n int) {
	w.t.Helper()
	if err := w.store.Read().QueryRow("SELECT count(*) FROM search_lessons").Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func corpus(t *testing.T) *searchtest.Set {
	t.Helper()
	set, err := searchtest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// quality is the mean reciprocal rank of the first tool that serves a query.
func (w *world) quality(agent string, queries []searchtest.Query) float64 {
	sum := 0.0
	for _, q := range queries {
		g := w.engine.Corpus().Scope(nil).Search(search.Query{Text: q.Query, Limit: 10, Usage: w.Usage(agent, q.Query)})
		for i, h := range g.Hits {
			if slices.Contains(q.Relevant, h.Name) {
				sum += 1 / float64(i+1)
				break
			}
		}
	}
	return sum / float64(len(queries))
}

// The stream of some weeks: agents search in their own words, look at ten matches, now and then call something useless
// first, and then what served them. Later they ask for the same things in other words.
func TestAStreamOfSearchesAndCallsImprovesLaterSimilarQueriesAndHarmsNoOthers(t *testing.T) {
	set := corpus(t)
	w := newWorld(t, set.Docs)
	var later, others []searchtest.Query
	for i, q := range set.Queries {
		if len(q.Relevant) == 0 || q.Kind == "names" || q.Kind == "multi" {
			continue
		}
		if i%2 == 0 {
			others = append(others, q)
			continue
		}
		for week := range 3 {
			session := fmt.Sprintf("desk/%d-%d", i, week)
			hits := w.search("desk", session, 10, q.Query)[0].Hits
			if len(hits) > 0 && i%5 == 0 && week == 0 {
				w.Called("desk", session, hits[len(hits)-1].Name, true) // a detour
			}
			w.Called("desk", session, "files_read", true) // a tool in the agent's own list
			w.Called("desk", session, q.Relevant[0], true)
		}
		words := strings.Fields(q.Query)
		slices.Reverse(words)
		q.Query = "please " + strings.Join(words, " ")
		later = append(later, q)
	}
	w.reopen()

	before, after := w.quality("other", later), w.quality("desk", later)
	t.Logf("similar queries: MRR %.3f before, %.3f after", before, after)
	if after < before+.05 {
		t.Errorf("similar queries: MRR %.3f before, %.3f after", before, after)
	}
	if before, after := w.quality("other", others), w.quality("desk", others); after < before-.005 {
		t.Errorf("other queries: MRR %.3f before, %.3f after", before, after)
	}
}

func document(name, description string) search.Document {
	return search.Document{Name: name, Source: "s", Description: description}
}

func TestAHostileAgentCannotPushItsToolAboveAnExactMatchNorReachOthers(t *testing.T) {
	w := newWorld(t, []search.Document{
		document("mcp__bank__send_payment", "Sends a payment."),
		document("mcp__evil__send_payment_now", "Sends a payment, send payment, payment send."),
		document("mcp__evil__other", "Sends nothing to nobody, payment."),
	})
	before := w.search("other", "other/1", 5, "send money payment")[0]
	for i := range 40 {
		session := fmt.Sprint("desk/", i)
		for _, q := range []string{"mcp__bank__send_payment", "send_payment", "send payment", "bank send payment", "send money payment"} {
			w.search("desk", session, 20, q)
			w.Called("desk", session, "mcp__evil__send_payment_now", true)
			w.Called("desk", session, "mcp__evil__other", true)
		}
	}
	w.reopen()
	for _, q := range []string{"mcp__bank__send_payment", "send_payment", "MCP__BANK__SEND_PAYMENT"} {
		if got := w.search("desk", "desk/x", 5, q)[0].Hits[0].Name; got != "mcp__bank__send_payment" {
			t.Errorf("%q finds %s first", q, got)
		}
	}
	after := w.search("other", "other/1", 5, "send money payment")[0]
	for i, h := range before.Hits {
		if after.Hits[i] != h {
			t.Errorf("another agent's place %d was %v and is %v", i+1, h, after.Hits[i])
		}
	}
	if n := w.rows(); n == 0 || n > 5*2*8 {
		t.Errorf("400 calls left %d lessons", n)
	}
}

func TestWhatACallTeaches(t *testing.T) {
	docs := []search.Document{
		document("mcp__mail__send", "Sends a mail."), document("mcp__mail__list", "Lists mail."),
		document("mcp__tracker__create_issue", "Creates an issue."), document("mcp__files__remove", "Removes a file."),
	}
	const send, issue, remove = "mcp__mail__send", "mcp__tracker__create_issue", "mcp__files__remove"
	for name, test := range map[string]struct {
		play func(w *world)
		want []string // "query tool" of each lesson
	}{
		"the query that found the tool": {func(w *world) {
			w.search("desk", "desk/1", 5, "send mail", "create an issue")
			w.Called("desk", "desk/1", send, true)
		}, []string{"mail send " + send}},
		"a query before it that found nothing and has a word in common": {func(w *world) {
			w.search("desk", "desk/1", 1, "list weekly mail")
			w.search("desk", "desk/1", 5, "send mail")
			w.Called("desk", "desk/1", send, true)
		}, []string{"mail send " + send, "list mail week " + send}},
		"once for each query, however often the tool is called": {func(w *world) {
			w.search("desk", "desk/1", 5, "send mail")
			for range 5 {
				w.Called("desk", "desk/1", send, true)
			}
		}, []string{"mail send " + send}},
		"nothing when the call failed": {func(w *world) {
			w.search("desk", "desk/1", 5, "send mail")
			w.Called("desk", "desk/1", send, false)
		}, nil},
		"nothing about a tool that no search found": {func(w *world) {
			w.search("desk", "desk/1", 5, "send mail")
			w.Called("desk", "desk/1", remove, true)
		}, nil},
		"nothing across sessions and agents": {func(w *world) {
			w.search("desk", "desk/1", 5, "send mail")
			w.Called("desk", "desk/2", send, true)
			w.Called("other", "desk/1", send, true)
		}, nil},
		"nothing of an agent that does not learn": {func(w *world) {
			w.search("stranger", "stranger/1", 5, "send mail")
			w.Called("stranger", "stranger/1", send, true)
		}, nil},
		"nothing after ten other calls": {func(w *world) {
			w.search("desk", "desk/1", 5, "create an issue")
			for range 10 {
				w.Called("desk", "desk/1", "files_read", true)
			}
			w.Called("desk", "desk/1", issue, true)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, docs)
			test.play(w)
			w.reopen()
			rows, err := w.store.Read().Query("SELECT terms, tool FROM search_lessons ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var got []string
			for rows.Next() {
				var terms, name string
				if err := rows.Scan(&terms, &name); err != nil {
					t.Fatal(err)
				}
				got = append(got, terms+" "+name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("lessons %q, want %q", got, test.want)
			}
		})
	}
}

func TestACallAfterTenMinutesTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, dir: t.TempDir()}
		var err error
		if w.engine, err = search.New(nil); err != nil {
			t.Fatal(err)
		}
		w.engine.Update([]search.Document{document("mcp__mail__send", "Sends a mail.")})
		w.open()
		w.search("desk", "desk/1", 5, "send mail")
		time.Sleep(10*time.Minute + time.Second)
		w.Called("desk", "desk/1", "mcp__mail__send", true)
		w.search("desk", "desk/1", 5, "send mail")
		time.Sleep(9 * time.Minute)
		w.Called("desk", "desk/1", "mcp__mail__send", true)
		synctest.Wait()
		if n := w.rows(); n != 1 {
			t.Errorf("%d lessons, want that of the second search", n)
		}
		if u := w.Usage("desk", "send mail"); u == nil || u("mcp__mail__send") <= 0 {
			t.Error("the lesson is not used at once")
		}
		time.Sleep(200 * 24 * time.Hour)
		synctest.Wait()
		if u := w.Usage("desk", "send mail"); u != nil {
			t.Errorf("after 200 days it still counts %v", u("mcp__mail__send"))
		}
		w.close()
		if err := w.engine.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestLessonsAreForgottenByAgentAndTool(t *testing.T) {
	docs := []search.Document{document("mcp__mail__send", "Sends a mail."), document("mcp__mail__list", "Lists mail.")}
	teach := func(w *world) {
		for _, agent := range []string{"desk", "other"} {
			w.search(agent, agent+"/1", 5, "send mail", "list mail")
			w.Called(agent, agent+"/1", "mcp__mail__send", true)
			w.Called(agent, agent+"/1", "mcp__mail__list", true)
		}
	}
	for name, test := range map[string]struct {
		agent, tool string
		forgotten   int
	}{
		"everything":             {"", "", 8},
		"of one agent":           {"desk", "", 4},
		"of one tool":            {"", "mcp__mail__send", 4},
		"of one agent and tool":  {"desk", "mcp__mail__send", 2},
		"of a tool never called": {"", "nothing", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, docs)
			teach(w)
			n, err := w.Forget(t.Context(), test.agent, test.tool)
			if err != nil || n != test.forgotten {
				t.Errorf("forgot %d (%v), want %d", n, err, test.forgotten)
			}
			for _, agent := range []string{"desk", "other"} {
				gone := (test.agent == "" || test.agent == agent) && (test.tool == "" || test.tool == "mcp__mail__send")
				u := w.Usage(agent, "send mail")
				if known := u != nil && u("mcp__mail__send") > 0; known == gone {
					t.Errorf("%s knows the tool: %v", agent, known)
				}
			}
			if left := w.rows(); left != 8-test.forgotten {
				t.Errorf("%d lessons are left", left)
			}
		})
	}
}

// broken is a database that cannot be written.
type broken struct{ learning.Database }

func (broken) Write(context.Context, func(context.Context, *sql.Conn) error) error {
	return fmt.Errorf("the disk is full")
}

func TestADatabaseThatFailsHarmsNeitherSearchesNorCalls(t *testing.T) {
	w := newWorld(t, []search.Document{document("mcp__mail__send", "Sends a mail.")})
	r, err := learning.New(t.Context(), &learning.Options{
		Database: broken{learning.Database(must(w.store.Writer(false)))}, Terms: w.engine.Terms, Agents: []string{"desk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Recorder, w.stop = r, swap(w.stop, r)
	for i := range 1200 {
		w.search("desk", fmt.Sprint("desk/", i), 5, "send mail")
		w.Called("desk", fmt.Sprint("desk/", i), "mcp__mail__send", true)
	}
	if _, err := r.Forget(t.Context(), "", ""); err == nil {
		t.Error("forgetting succeeded")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// swap runs another recorder until stop is called, after which the first ends too.
func swap(stop func(), r *learning.Recorder) func() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		<-ended
		stop()
	}
}

// answers is a pipeline with given outcomes.
type answers []pipeline.Outcome

func (a answers) Do(context.Context, []*pipeline.Request) []pipeline.Outcome { return a }

func TestOnlyCallsThatSucceededTeach(t *testing.T) {
	failed := tool.TextResult("no")
	failed.IsError = true
	for name, test := range map[string]struct {
		outcome pipeline.Outcome
		teaches bool
	}{
		"a result":              {pipeline.Outcome{Result: tool.TextResult("done")}, true},
		"an error of the tool":  {pipeline.Outcome{Result: failed}, false},
		"a refusal":             {pipeline.Outcome{Err: tool.Errorf(tool.DeniedByRule, "no")}, false},
		"a call that was held":  {pipeline.Outcome{Result: tool.TextResult(""), Suspended: []byte("{}")}, false},
		"an answer that is not": {pipeline.Outcome{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, []search.Document{document("mcp__mail__send", "Sends a mail.")})
			w.search("desk", "desk/1", 5, "send mail")
			request := &pipeline.Request{Call: &tool.Call{Agent: "desk", Session: "desk/1", Tool: "mcp__mail__send"}}
			if got := w.Watch(answers{test.outcome}).Do(t.Context(), []*pipeline.Request{request}); len(got) != 1 {
				t.Errorf("outcomes %v", got)
			}
			w.reopen()
			if taught := w.rows() > 0; taught != test.teaches {
				t.Errorf("taught %v, want %v", taught, test.teaches)
			}
		})
	}
}
