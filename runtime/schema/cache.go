package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of a cache where the options name none.
const (
	defaultSchemas     = 2048
	defaultSchemaBytes = 16 << 20
)

// Options configure a cache. The zero value works.
type Options struct {
	// Schemas and SchemaBytes bound what is kept compiled, by count and by the size of the sources; 0 is 2,048 and 16 MiB.
	Schemas, SchemaBytes int
	// MaxBytes and MaxDepth bound one call's arguments; 0 is 4 MiB and 64 levels.
	MaxBytes, MaxDepth int
	// Logger is told of schemas that cannot be used, once each; nil discards it.
	Logger *slog.Logger
}

// Cache keeps compiled schemas, across generations of the catalog, by their bytes. It may be used from any goroutine.
type Cache struct {
	log     *slog.Logger
	limits  limits
	count   int
	bytes   int
	clock   atomic.Uint64
	mu      sync.RWMutex
	entries map[string]*entry // by the schema's bytes
	held    int               // bytes of all keys
}

// entry is one schema, compiled by the first call that needs it while others that need it wait.
type entry struct {
	once sync.Once
	*compiled
	used atomic.Uint64 // the cache's clock at the last use
}

// NewCache makes a cache. A nil opts is the zero Options.
func NewCache(opts *Options) *Cache {
	if opts == nil {
		opts = &Options{}
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Cache{
		log:     log,
		limits:  limits{bytes: cmp.Or(opts.MaxBytes, defaultMaxBytes), depth: cmp.Or(opts.MaxDepth, defaultMaxDepth)},
		count:   cmp.Or(opts.Schemas, defaultSchemas),
		bytes:   cmp.Or(opts.SchemaBytes, defaultSchemaBytes),
		entries: map[string]*entry{},
	}
}

// Check reports why a schema cannot be used, nil if it can.
func Check(schema json.RawMessage) error {
	_, err := compile(schema)
	return err
}

// compiled returns a tool's schema, compiled. It is never nil: a schema that cannot be used accepts everything.
func (c *Cache) compiled(def *tool.Definition) *compiled {
	if len(def.InputSchema) == 0 {
		return &compiled{}
	}
	e := c.entry(def.InputSchema)
	e.once.Do(func() {
		var err error
		if e.compiled, err = compile(def.InputSchema); err != nil {
			e.compiled = &compiled{}
			digest := sha256.Sum256(def.InputSchema)
			c.log.Warn("a tool's schema cannot be used, its arguments pass unchecked", "tool", def.Name, "source", def.SourceName,
				"schema", hex.EncodeToString(digest[:6]), "error", err)
		}
	})
	return e.compiled
}

func (c *Cache) entry(schema []byte) *entry {
	now := c.clock.Add(1)
	c.mu.RLock()
	e := c.entries[string(schema)]
	c.mu.RUnlock()
	if e == nil {
		e = c.add(schema)
	}
	e.used.Store(now)
	return e
}

func (c *Cache) add(schema []byte) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[string(schema)]; e != nil {
		return e
	}
	for len(c.entries) > 0 && (len(c.entries) >= c.count || c.held+len(schema) > c.bytes) {
		c.evict()
	}
	e := &entry{}
	e.used.Store(c.clock.Load())
	c.entries[string(schema)] = e
	c.held += len(schema)
	return e
}

// evict drops the schema that was not used for the longest time. It looks at all of them, which is little beside the
// compilation that follows.
func (c *Cache) evict() {
	var oldest string
	var at uint64
	for key, e := range c.entries {
		if used := e.used.Load(); oldest == "" || used < at {
			oldest, at = key, used
		}
	}
	delete(c.entries, oldest)
	c.held -= len(oldest)
}
