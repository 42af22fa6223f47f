package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/search/embed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is an embeddings endpoint with a behaviour.
type service struct {
	*httptest.Server
	behaviour atomic.Pointer[func(w http.ResponseWriter, r *http.Request, texts []string)]

	mu       sync.Mutex
	requests [][]string
	headers  []http.Header
}

type behaviour = func(w http.ResponseWriter, r *http.Request, texts []string)

func newService(t *testing.T, b behaviour) *service {
	t.Helper()
	s := &service{}
	s.behave(b)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Model != "m" || r.Method != http.MethodPost {
			t.Errorf("%s %+v: %v", r.Method, req, err)
		}
		s.mu.Lock()
		s.requests, s.headers = append(s.requests, req.Input), append(s.headers, r.Header)
		s.mu.Unlock()
		(*s.behaviour.Load())(w, r, req.Input)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) behave(b behaviour) { s.behaviour.Store(&b) }

// texts are all that were sent, in order.
func (s *service) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.requests...)
}

// good answers each text with a vector of its own, in an order of its own.
func good(vector func(text string) []float32) behaviour {
	return func(w http.ResponseWriter, _ *http.Request, texts []string) {
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []item
		for i, text := range texts {
			data = append(data, item{i, vector(text)})
		}
		slices.Reverse(data)
		if err := json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data}); err != nil {
			panic(http.ErrAbortHandler) // the client went away
		}
	}
}

func text(answer string, status int) behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ []string) {
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}
}

// direction is a random vector of a text, always the same.
func direction(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, 64)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// logbook counts what was logged.
type logbook struct {
	mu    sync.Mutex
	lines []string
	grew  chan struct{}
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	select {
	case l.grew <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

func newLogbook() *logbook { return &logbook{grew: make(chan struct{}, 1)} }

// start runs an embedder until the test ends or stop is called.
func start(t *testing.T, opts embed.Options) (e *embed.Embedder, log *logbook, stop func()) {
	t.Helper()
	log = newLogbook()
	opts.Model, opts.Logger = "m", slog.New(slog.NewTextHandler(log, nil))
	e, err := embed.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return e, log, stop
}

// until asks for a query until the answer is as wanted: the catalog fills in the background.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("it did not come to this: %s", what)
		case <-tick.C:
		}
	}
}

func known(e *embed.Embedder, query string, names ...string) bool {
	near := e.Near(context.Background(), []string{query})
	return near != nil && !slices.ContainsFunc(names, func(name string) bool { _, ok := near[0](name); return !ok })
}

func TestToolsAreNearByTheirMeaning(t *testing.T) {
	s := newService(t, good(func(text string) []float32 {
		switch text {
		case "north":
			return []float32{2, 0}
		case "north east":
			return []float32{3, 3}
		}
		return []float32{0, -5}
	}))
	e, log, _ := start(t, embed.Options{URL: s.URL, APIKey: "s3cret"})
	e.Update([]embed.Text{{"a", "north"}, {"b", "north east"}, {"c", "  "}})
	until(t, "three tools are embedded", func() bool { return known(e, "north", "a", "b", "c") })
	near := e.Near(t.Context(), []string{"north"})[0]
	for name, want := range map[string]float64{"a": 1, "b": math.Sqrt2 / 2, "c": 0} {
		if got, ok := near(name); !ok || math.Abs(got-want) > .01 {
			t.Errorf("%s: %v %v, want %v", name, got, ok, want)
		}
	}
	if _, ok := near("unknown"); ok {
		t.Error("a tool that is not in the catalog is near")
	}
	if h := s.headers[0]; h.Get("Authorization") != "Bearer s3cret" || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
	if log.String() != "" {
		t.Errorf("logged: %s", log)
	}
}

func TestATextIsSentOnceAcrossChangesAndRestarts(t *testing.T) {
	s := newService(t, good(direction))
	dir := t.TempDir()
	options := embed.Options{URL: s.URL, Dir: dir}
	e, _, stop := start(t, options)
	e.Update([]embed.Text{{"a", "first"}, {"b", "second"}})
	until(t, "both are embedded", func() bool { return known(e, "q", "a", "b") })
	e.Update([]embed.Text{{"a", "first"}, {"b", "second, changed"}, {"c", "third"}})
	until(t, "the change is", func() bool { return known(e, "q", "a", "b", "c") })
	stop()
	e, _, stop = start(t, options)
	e.Update([]embed.Text{{"a", "first"}, {"b", "second, changed"}, {"c", "third"}})
	until(t, "they are read back", func() bool { return known(e, "q", "a", "b", "c") })
	stop()
	sent := map[string]int{}
	for _, text := range s.texts() {
		sent[text]++
	}
	for _, text := range []string{"first", "second", "second, changed", "third"} {
		if sent[text] != 1 {
			t.Errorf("%q was sent %d times", text, sent[text])
		}
	}
	if sent["q"] != 2 { // once in each life
		t.Errorf("the query was sent %d times", sent["q"])
	}
}

func TestTheFileOfVectorsIsBoundToItsModelAndSurvivesDamage(t *testing.T) {
	s := newService(t, good(direction))
	dir := t.TempDir()
	life := func(url string) (sent int) {
		before := len(s.texts())
		e, _, stop := start(t, embed.Options{URL: url, Dir: dir})
		defer stop()
		e.Update([]embed.Text{{"a", "first"}, {"b", "second"}})
		until(t, "both are known", func() bool { return known(e, "q", "a", "b") })
		return len(s.texts()) - before - 1 // without the query
	}
	file := func() string {
		files, err := filepath.Glob(filepath.Join(dir, "embeddings-*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files %q, %v", files, err)
		}
		return files[0]
	}
	if n := life(s.URL); n != 2 {
		t.Errorf("%d texts sent", n)
	}
	whole, err := os.ReadFile(file())
	if err != nil {
		t.Fatal(err)
	}
	if n := life(s.URL + "/other"); n != 2 {
		t.Errorf("another endpoint: %d texts sent", n)
	}
	for name, test := range map[string]struct {
		content []byte
		sent    int
	}{
		"torn at the end":      {whole[:len(whole)-5], 1},
		"a flipped bit":        {flip(whole, len(whole)-20), 1},
		"a flipped bit before": {flip(whole, 30), 2},
		"another magic":        {flip(whole, 0), 2},
		"no dimensions":        {append(slices.Clone(whole[:8]), 0, 0, 0, 0), 2},
		"huge dimensions":      {append(slices.Clone(whole[:8]), 255, 255, 255, 255), 2},
		"empty":                {nil, 2},
		"as it was":            {whole, 0},
	} {
		if n := life(s.URL); n < 0 {
			t.Fatal(n)
		}
		if err := os.WriteFile(file(), test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if n := life(s.URL); n != test.sent {
			t.Errorf("%s: %d texts sent, want %d", name, n, test.sent)
		}
	}
}

func flip(content []byte, at int) []byte {
	c := slices.Clone(content)
	c[at] ^= 1
	return c
}

func TestAnEndpointThatFailsIsSilentAndLoggedOnce(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request, _ []string) { <-r.Context().Done() }
	vectors := func(v ...any) behaviour {
		return func(w http.ResponseWriter, _ *http.Request, texts []string) {
			var data []map[string]any
			for i := range texts {
				data = append(data, map[string]any{"index": i, "embedding": v})
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
				t.Log(err)
			}
		}
	}
	for name, b := range map[string]behaviour{
		"slow":     hang,
		"an error": text(`{"error":"no such model"}`, 404),
		"a redirect": func(w http.ResponseWriter, r *http.Request, _ []string) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"no JSON":               text("<html>", 200),
		"an endless answer":     func(w http.ResponseWriter, _ *http.Request, _ []string) { fmt.Fprint(w, strings.Repeat("[", 1<<20)) },
		"no vectors":            text(`{"data":[]}`, 200),
		"an empty vector":       vectors(),
		"a vector of zeros":     vectors(0, 0),
		"text in a vector":      vectors("a"),
		"numbers out of range":  vectors(1e300, 1),
		"too many dimensions":   vectors(make([]any, 10_000)...),
		"an index out of range": text(`{"data":[{"index":7,"embedding":[1]}]}`, 200),
		"a negative index":      text(`{"data":[{"index":-1,"embedding":[1]}]}`, 200),
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, b)
			e, log, _ := start(t, embed.Options{URL: s.URL})
			start := time.Now()
			for i := range 50 {
				if e.Near(t.Context(), []string{fmt.Sprint("query ", i)}) != nil {
					t.Fatal("there is a meaning")
				}
			}
			if took := time.Since(start); took > 2*embed.QueryTimeout+time.Second {
				t.Errorf("50 searches took %v", took)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d log lines:\n%s", n, log)
			}
		})
	}
	t.Run("dark", func(t *testing.T) {
		s := newService(t, hang)
		s.Close()
		e, log, _ := start(t, embed.Options{URL: s.URL})
		e.Update([]embed.Text{{"a", "first"}})
		for i := range 50 {
			if e.Near(t.Context(), []string{fmt.Sprint("query ", i)}) != nil {
				t.Fatal("there is a meaning")
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d log lines:\n%s", n, log)
		}
	})
}

func TestASearchWaitsNoLongerThanItsBound(t *testing.T) {
	release := make(chan struct{})
	s := newService(t, func(_ http.ResponseWriter, r *http.Request, _ []string) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	e, _, _ := start(t, embed.Options{URL: s.URL, Timeout: time.Hour})
	begin := time.Now()
	if e.Near(t.Context(), []string{"q"}) != nil {
		t.Error("there is a meaning")
	}
	if took := time.Since(begin); took < embed.QueryTimeout || took > embed.QueryTimeout+2*time.Second {
		t.Errorf("waited %v, the bound is %v", took, embed.QueryTimeout)
	}
}

func TestASearcherThatGoesAwayIsNoOutage(t *testing.T) {
	asked := make(chan struct{})
	s := newService(t, func(_ http.ResponseWriter, r *http.Request, _ []string) {
		close(asked)
		<-r.Context().Done()
	})
	e, log, _ := start(t, embed.Options{URL: s.URL})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if e.Near(ctx, []string{"q"}) != nil {
		t.Error("there is a meaning")
	}
	s.behave(good(direction))
	if e.Near(t.Context(), []string{"q"}) == nil || log.String() != "" {
		t.Errorf("the endpoint is avoided: %s", log)
	}
}

func TestAnOutageEndsByItself(t *testing.T) {
	s := newService(t, text("busy", 503))
	e, log, _ := start(t, embed.Options{URL: s.URL})
	e.Update([]embed.Text{{"a", "first"}})
	until(t, "the outage is noticed", func() bool { return strings.Contains(log.String(), "the endpoint fails") })
	s.behave(good(direction))
	until(t, "the tool is embedded", func() bool { return known(e, "q", "a") })
	if got := log.String(); strings.Count(got, "the endpoint fails") != 1 || strings.Count(got, "answers again") != 1 {
		t.Errorf("logged:\n%s", got)
	}
}

func TestVectorsOfAnotherDimensionAreRefused(t *testing.T) {
	s := newService(t, good(direction))
	e, log, _ := start(t, embed.Options{URL: s.URL, Dir: t.TempDir()})
	e.Update([]embed.Text{{"a", "first"}})
	until(t, "the tool is embedded", func() bool { return known(e, "q", "a") })
	s.behave(good(func(string) []float32 { return []float32{1, 2, 3} }))
	near := e.Near(t.Context(), []string{"another"})
	if _, ok := near[0]("a"); ok {
		t.Error("vectors of 3 and of 64 numbers are compared")
	}
	e.Update([]embed.Text{{"a", "first"}, {"b", "second"}})
	until(t, "it is logged", func() bool { return strings.Contains(log.String(), "vectors have 3 numbers and had 64 before") })
	if known(e, "q", "b") {
		t.Error("b has a vector")
	}
}

func TestTenThousandToolsAreEmbeddedInBatches(t *testing.T) {
	s := newService(t, good(direction))
	e, _, _ := start(t, embed.Options{URL: s.URL, Dir: t.TempDir()})
	texts := make([]embed.Text, 10_000)
	for i := range texts {
		texts[i] = embed.Text{Name: fmt.Sprint("tool", i), Text: fmt.Sprint("text ", i)}
	}
	e.Update(texts)
	until(t, "the last one is embedded", func() bool { return known(e, "q", "tool0", "tool5000", "tool9999") })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if len(r) > 64 {
			t.Fatalf("a batch of %d", len(r))
		}
	}
	if n := len(s.requests); n > 10_000/64+3 {
		t.Errorf("%d requests", n)
	}
}

func TestManySearchesAtOnce(t *testing.T) {
	s := newService(t, good(direction))
	e, log, _ := start(t, embed.Options{URL: s.URL})
	e.Update([]embed.Text{{"a", "first"}})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for _, near := range e.Near(t.Context(), []string{fmt.Sprint("query ", i), "the same"}) {
				near("a")
			}
			if i%20 == 0 {
				e.Update([]embed.Text{{"a", "first"}, {"b", fmt.Sprint("text ", i)}})
			}
		})
	}
	all.Wait()
	if got := log.String(); strings.Count(got, "fails") > 1 {
		t.Errorf("logged:\n%s", got)
	}
}
