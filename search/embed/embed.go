// Package embed asks an embeddings endpoint of the OpenAI shape what texts mean, so that search can order the tools that
// words have found by their meaning too.
//
// The vectors of the catalog are computed in the background, in batches, and kept on disk by the digest of each text, so
// that a tool is sent once. A query is embedded while the search waits, briefly: when the endpoint is slow or does not
// answer, there is no meaning, and the search is one by words. An outage is logged once, however many searches fall into it.
package embed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// QueryTimeout bounds how long a search waits for the meaning of its queries.
const QueryTimeout = 300 * time.Millisecond

// Bounds on what is kept and asked.
const (
	batchSize    = 64
	batchTimeout = 30 * time.Second
	maxText      = 2000      // bytes of a text that are sent
	maxBytes     = 256 << 20 // of all vectors together
	maxDimension = 8192
	maxQueries   = 512 // embedded queries that are remembered
	maxAtOnce    = 16  // queries that are being embedded; more searches go by words
)

// Options configure an Embedder. URL and Model are required.
type Options struct {
	URL    string // of the endpoint: POST {"model", "input": [text, …]}
	Model  string
	APIKey string // sent as a bearer token; "" sends none
	// Timeout bounds the embedding of a search's queries; 0, and everything above it, is QueryTimeout.
	Timeout time.Duration
	// Dir is where vectors are kept; "" keeps them in memory. The embedder owns the files in it that begin with
	// "embeddings-".
	Dir string
	// Transport carries the requests; nil is a transport of its own. Redirects are never followed.
	Transport http.RoundTripper
	Logger    *slog.Logger // nil discards
}

// Text is what is embedded of one tool.
type Text struct{ Name, Text string }

// digest identifies a text.
type digest [sha256.Size / 2]byte

func digestOf(text string) digest {
	sum := sha256.Sum256([]byte(text))
	return digest(sum[:len(digest{})])
}

// Embedder knows the meaning of a catalog. New makes it, Run works for it.
type Embedder struct {
	endpoint *endpoint
	timeout  time.Duration
	log      *slog.Logger
	dir      string
	current  atomic.Pointer[catalog]
	changed  chan struct{}
	asking   chan struct{} // a token for each query that is being embedded
	queries  *queryCache
	outage   outage
}

// catalog is one state of the tools. Its vectors fill while it is the current one.
type catalog struct {
	slots   map[string]int // by name
	texts   []string
	digests []digest
	vectors []atomic.Pointer[vector]
}

// New checks the options. It sends nothing and touches no file.
func New(opts *Options) (*Embedder, error) {
	if opts == nil || opts.URL == "" || opts.Model == "" {
		return nil, errors.New("embeddings: a URL and a model are required")
	}
	timeout := QueryTimeout
	if opts.Timeout > 0 {
		timeout = min(timeout, opts.Timeout)
	}
	log := cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	e := &Embedder{
		endpoint: newEndpoint(opts), timeout: timeout, log: log, dir: opts.Dir,
		changed: make(chan struct{}, 1), asking: make(chan struct{}, maxAtOnce), queries: newQueryCache(),
		outage: outage{log: log, url: opts.URL},
	}
	e.current.Store(&catalog{})
	return e, nil
}

// Update makes texts the whole catalog. Vectors that are known serve at once, the others follow in the background.
func (e *Embedder) Update(texts []Text) {
	c := &catalog{
		slots: make(map[string]int, len(texts)), texts: make([]string, len(texts)),
		digests: make([]digest, len(texts)), vectors: make([]atomic.Pointer[vector], len(texts)),
	}
	old := e.current.Load()
	for i, t := range texts {
		c.slots[t.Name] = i
		c.texts[i] = cut(t.Text)
		c.digests[i] = digestOf(c.texts[i])
		if was, ok := old.slots[t.Name]; ok && old.digests[was] == c.digests[i] {
			c.vectors[i].Store(old.vectors[was].Load())
		}
	}
	e.current.Store(c)
	select {
	case e.changed <- struct{}{}:
	default: // Run knows already
	}
}

func cut(text string) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	if strings.TrimSpace(text) == "" {
		return "-" // endpoints refuse empty texts
	}
	return text
}

// Nearness tells how near a tool's meaning is to a query's, as a cosine; false where that is not known.
type Nearness func(name string) (float64, bool)

// Near embeds queries and returns a function for each, or nil when their meaning is not to be had in time.
func (e *Embedder) Near(ctx context.Context, queries []string) []Nearness {
	vectors := e.embedQueries(ctx, queries)
	if vectors == nil {
		return nil
	}
	c := e.current.Load()
	near := make([]Nearness, len(queries))
	for i, q := range vectors {
		near[i] = func(name string) (float64, bool) {
			slot, ok := c.slots[name]
			if !ok {
				return 0, false
			}
			v := c.vectors[slot].Load()
			if v == nil || len(v.values) != len(q) {
				return 0, false
			}
			return v.dot(q), true
		}
	}
	return near
}

func (e *Embedder) embedQueries(ctx context.Context, queries []string) [][]float32 {
	vectors := make([][]float32, len(queries))
	var missing []string
	var places []int
	for i, q := range queries {
		text := cut(q)
		if vectors[i] = e.queries.get(text); vectors[i] == nil {
			missing, places = append(missing, text), append(places, i)
		}
	}
	if len(missing) == 0 {
		return vectors
	}
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	default:
		return nil
	}
	if !e.outage.mayTry(time.Now()) {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	answer, err := e.endpoint.embed(asking, missing)
	if err != nil {
		if ctx.Err() == nil { // else it is the searcher that went away
			e.outage.failed(err, time.Now(), true)
		}
		return nil
	}
	e.outage.over(true)
	for i, v := range answer {
		vectors[places[i]] = v
		e.queries.put(missing[i], v)
	}
	return vectors
}

// queryCache remembers the vectors of queries. When it is full it begins anew.
type queryCache struct {
	mu sync.Mutex
	by map[string][]float32
}

func newQueryCache() *queryCache { return &queryCache{by: map[string][]float32{}} }

func (c *queryCache) get(text string) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[text]
}

func (c *queryCache) put(text string, v []float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.by) >= maxQueries {
		clear(c.by)
	}
	c.by[text] = v
}

// errDimension says that the endpoint's vectors do not fit those that are kept.
func errDimension(got, want int, where string) error {
	text := fmt.Sprintf("vectors have %d numbers and had %d before", got, want)
	if where != "" {
		text += "; if the model was changed, remove " + where
	}
	return errors.New(text)
}
