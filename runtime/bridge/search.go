package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// The bounds of a search and its answer.
const (
	maxQueries     = 7
	maxQueryChars  = 2000
	maxSources     = 100 // that an empty group lists
	maxExcerpt     = 500 // characters of a description
	maxRequired    = 32  // names of required arguments
	maxRequiredLen = 64  // characters of one
)

type searchAnswer struct {
	Queries        []string              `json:"queries"`
	TotalAvailable int                   `json:"total_available"`
	Results        []searchGroup         `json:"results"`
	Tools          map[tool.Name]*hitRow `json:"tools"`
	Connectors     *Degradation          `json:"connectors,omitempty"`
}

type searchGroup struct {
	Query            string      `json:"query"`
	Matches          []tool.Name `json:"matches"`
	Confidence       string      `json:"confidence,omitempty"`
	AvailableSources []sourceRow `json:"available_sources,omitempty"`
	Hint             string      `json:"hint,omitempty"`
}

type sourceRow struct {
	Name        string `json:"name"`
	ToolCount   int    `json:"tool_count"`
	Unavailable string `json:"unavailable,omitempty"`
}

type hitRow struct {
	Source      tool.Source `json:"source"`
	SourceName  string      `json:"source_name"`
	Description string      `json:"description"`
	Required    []string    `json:"required"`
	Unavailable string      `json:"unavailable,omitempty"`
}

// Search answers tool_search.
func (b *Bridge) Search(ctx context.Context, c *Caller, args json.RawMessage) (*tool.Result, error) {
	queries, limit, refusal := c.searchInput(args)
	if refusal != nil {
		return nil, b.refuse(ctx, c, refusal)
	}
	v := c.searchable()
	hosted := b.askConnectors(ctx, c, queries)
	groups, err := b.rank(ctx, c.request(queries, limit, hosted))
	if err != nil {
		return nil, err
	}
	answer := &searchAnswer{
		Queries: queries, TotalAvailable: len(v.Entries()), Tools: map[tool.Name]*hitRow{}, Connectors: hosted.Degraded,
	}
	for i, query := range queries {
		g := searchGroup{Query: query, Matches: []tool.Name{}}
		for _, hit := range groups[i].Hits {
			row := hosted.row(i, hit)
			if row == nil {
				// The index may be a generation ahead or behind; only what the view has is told.
				e, ok := v.Entry(hit.Name)
				if !ok {
					continue
				}
				row = newHitRow(e.Definition, e.State().Reason)
			}
			g.Matches = append(g.Matches, hit.Name)
			if answer.Tools[hit.Name] == nil {
				answer.Tools[hit.Name] = row
			}
		}
		g.explain(v, groups[i].Weak)
		answer.Results = append(answer.Results, g)
	}
	return encode(answer)
}

// Explain ranks as Search does and returns why each tool ranks where it does. limit is 0 for the caller's own.
func (b *Bridge) Explain(ctx context.Context, c *Caller, queries []string, limit int) ([]search.Group, error) {
	if limit <= 0 {
		limit = c.limit(nil)
	}
	r := c.request(queries, limit, b.askConnectors(ctx, c, queries))
	r.Explain = true
	return b.rank(ctx, r)
}

func (c *Caller) request(queries []string, limit int, hosted *Hosted) *SearchRequest {
	return &SearchRequest{
		Agent: c.Agent, Session: c.Session, View: c.searchable(), Queries: queries, Limit: limit, Extra: hosted.documents(),
	}
}

// rank asks the searcher. Whatever happens there ends as an answer that an agent can act on.
func (b *Bridge) rank(ctx context.Context, r *SearchRequest) ([]search.Group, error) {
	err := errors.New("no index is configured")
	var groups []search.Group
	if b.search != nil {
		groups, err = b.search.Search(ctx, r)
	}
	if err == nil && len(groups) != len(r.Queries) {
		err = fmt.Errorf("%d groups for %d queries", len(groups), len(r.Queries))
	}
	switch {
	case err == nil:
		return groups, nil
	case ctx.Err() != nil:
		return nil, tool.AsError(ctx.Err())
	}
	failure := tool.Errorf(tool.Internal, "searching is not possible right now; call a tool by its exact name if you know it, or try again").
		WithDetail("search: %v", err)
	failure.Retryable = true
	return nil, failure
}

func (c *Caller) searchInput(args json.RawMessage) (queries []string, limit int, refusal *tool.Error) {
	keys, refusal := object(args)
	if refusal != nil {
		return nil, 0, refusal
	}
	queries, refusal = texts(keys, "queries", "query", `{"queries": ["create a github issue"]}`)
	if refusal != nil {
		return nil, 0, refusal
	}
	if len(queries) > maxQueries {
		return nil, 0, tool.Errorf(tool.BadRequest, "%d queries are too many; send at most %d", len(queries), maxQueries)
	}
	for i, q := range queries {
		if n := utf8.RuneCountInString(q); n > maxQueryChars {
			return nil, 0, tool.Errorf(tool.BadRequest, "queries[%d] has %d characters, and %d are the limit; a few words (service, action, object) find more", i, n, maxQueryChars)
		}
	}
	return queries, c.limit(keys["limit"]), nil
}

// limit reads the number of matches a query may have: the default unless it is a number, and within its bounds.
func (c *Caller) limit(raw json.RawMessage) int {
	most := cmp.Or(c.MaxLimit, 20)
	n, err := strconv.ParseFloat(string(raw), 64)
	if errors.Is(err, strconv.ErrSyntax) || math.IsNaN(n) {
		return min(cmp.Or(c.DefaultLimit, 5), most)
	}
	return int(min(max(math.Trunc(n), 1), float64(most))) // a number out of range is an infinity here
}

func newHitRow(d *tool.Definition, unavailable string) *hitRow {
	return &hitRow{
		Source: d.Source, SourceName: d.SourceName, Description: catalog.Excerpt(d.Description, maxExcerpt),
		Required: required(d.InputSchema), Unavailable: unavailable,
	}
}

// required returns the names of a schema's required arguments; none if the schema says nothing that can be read.
func required(schema json.RawMessage) []string {
	names := []string{}
	keys, _ := asObject(schema)
	list, _ := asList(keys["required"])
	for _, raw := range list {
		if name, ok := asText(raw); ok && len(names) < maxRequired {
			names = append(names, catalog.Excerpt(name, maxRequiredLen))
		}
	}
	return names
}

// explain tells what to do with a group that found nothing, or nothing near.
func (g *searchGroup) explain(v *catalog.View, weak bool) {
	switch {
	case len(v.Entries()) == 0 && len(g.Matches) == 0:
		g.Hint = "no tools are behind this search; use those in your own list"
	case len(g.Matches) == 0:
		g.Hint = "no word of the query matched, but these sources are connected; try service plus action, or look at the tools in your own list"
	case weak:
		g.Confidence = "weak"
		g.Hint = "these are only the nearest; if none does it, try service plus action with a connected source, or say that no tool here does it"
	default:
		return
	}
	sources := v.Sources()
	for _, s := range sources[:min(len(sources), maxSources)] {
		g.AvailableSources = append(g.AvailableSources, sourceRow{s.Name, s.Tools, s.Unavailable})
	}
	if n := len(sources) - maxSources; n > 0 {
		g.Hint += fmt.Sprintf(" (%d more sources are connected)", n)
	}
}

// encode makes the result of a bridge tool: compact JSON as text. It is not repeated as structured content, which some
// clients would give the model beside the text.
func encode(answer any) (*tool.Result, error) {
	raw, err := tool.JSON(answer)
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "the answer could not be written; tell the operator").WithDetail("%v", err)
	}
	return tool.TextResult(string(raw)), nil
}
