package schema

import (
	"encoding/json"
	"log/slog"
)

// Options configure a cache.
type Options struct {
	// Logger is told of schemas that cannot be used, once each; nil discards it.
	Logger *slog.Logger
}

// Cache keeps compiled schemas.
type Cache struct{ log *slog.Logger }

// NewCache makes a cache.
func NewCache(opts *Options) *Cache { return &Cache{log: opts.Logger} }

// Fit holds arguments against a schema.
func (c *Cache) Fit(schema, args json.RawMessage) Fit {
	return Fit{Arguments: args}
}
