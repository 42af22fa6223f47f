package bridge

import (
	"context"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// Connectors are hosted tools, which are no part of the catalog.
type Connectors interface {
	// Search gives the hosted tools for each query, in order, among those that the caller was granted. It ends with ctx. A
	// service that fails is no error: what the agent should know of it is the answer's Degraded.
	Search(ctx context.Context, c *Caller, queries []string) *Hosted
}

// Hosted is what the connectors answered.
type Hosted struct {
	Hits     [][]HostedTool // for each query; of one query the first 50 count
	Degraded *Degradation   // nil: there is nothing that the agent should know
}

// HostedTool is one hosted tool. Its definition has the source connectors.
type HostedTool struct {
	Definition *tool.Definition
	// Note follows the description however long that is, such as the names of accounts.
	Note string
}

// Degradation tells an agent why its answer lacks hosted tools.
type Degradation struct {
	Status string `json:"status"` // such as "unavailable"
	Reason string `json:"reason"` // in a word
	Hint   string `json:"hint"`
}

// The bounds of the hosted part of a search.
const (
	connectorsTimeout = 30 * time.Second
	maxHosted         = 50 // tools for one query
)

// askConnectors asks for the hosted tools of all queries at once, but of no query that is the exact name of a tool here.
func (b *Bridge) askConnectors(ctx context.Context, c *Caller, queries []string) *Hosted {
	all := &Hosted{}
	if b.connectors == nil {
		return all
	}
	v := c.searchable()
	var asked []string
	places := make([]int, 0, len(queries)) // of the asked ones in queries
	for i, q := range queries {
		if _, local := v.Entry(q); !local {
			asked, places = append(asked, q), append(places, i)
		}
	}
	if len(asked) == 0 {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, connectorsTimeout)
	defer cancel()
	answer := b.connectors.Search(ctx, c, asked)
	all.Degraded = answer.Degraded
	all.Hits = make([][]HostedTool, len(queries))
	for i, hits := range answer.Hits[:min(len(answer.Hits), len(asked))] {
		for _, h := range hits[:min(len(hits), maxHosted)] {
			if _, local := v.Entry(h.Definition.Name); !local {
				all.Hits[places[i]] = append(all.Hits[places[i]], h)
			}
		}
	}
	return all
}

// documents are the hits as the search ranks them.
func (h *Hosted) documents() [][]search.Document {
	if h.Hits == nil {
		return nil
	}
	docs := make([][]search.Document, len(h.Hits))
	for i, hits := range h.Hits {
		for _, t := range hits {
			docs[i] = append(docs[i], search.Document{
				Name: t.Definition.Name, OwnName: t.Definition.OwnName, Source: t.Definition.SourceName,
				Description: t.Definition.Description, Parameters: t.Definition.InputSchema, Keywords: t.Definition.Keywords,
			})
		}
	}
	return docs
}

// row is what the answer tells about a hit of a query; nil if it is no hosted one.
func (h *Hosted) row(query int, hit search.Hit) *hitRow {
	if !hit.Extra || query >= len(h.Hits) {
		return nil
	}
	for _, t := range h.Hits[query] {
		if t.Definition.Name != hit.Name {
			continue
		}
		row := newHitRow(t.Definition, "")
		if t.Note != "" {
			row.Description += " " + t.Note
		}
		return row
	}
	return nil
}
