package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// ToolName is the built-in tool that reads kept results.
const ToolName tool.Name = "result_read"

// pageSlack is room for what a page says besides the text, so that a page is never itself too big.
const pageSlack = 200

// defaultPage is how many characters a read returns that asks for no number.
const defaultPage = 20_000

// Page is a piece of a kept result. Offsets are in characters.
type Page struct {
	ID     string `json:"id"`
	Offset int    `json:"offset"`
	Total  int    `json:"total"`
	Text   string `json:"text"`
	Next   int    `json:"next,omitempty"` // where the next piece begins; 0: this is the last one
}

// Read returns the piece of a result from offset on. A limit of 0 is 20,000; a bigger one than fits an agent is cut to that.
func (s *Store) Read(agent, session, id string, offset, limit int) (*Page, *tool.Error) {
	k, terr := s.find(agent, session, id)
	if terr != nil {
		return nil, terr
	}
	if offset < 0 || offset > k.chars || limit < 0 {
		return nil, tool.Errorf(tool.InvalidArguments, "the result has %d characters: offset must be between 0 and that, and limit not negative", k.chars)
	}
	raw, err := os.ReadFile(s.path(id))
	if err != nil {
		return nil, tool.Errorf(tool.NotAvailable, "the kept result cannot be read any more; call the tool again").WithDetail("%v", err)
	}
	limit = min(orElse(limit, defaultPage), max(s.options.MaxChars-pageSlack, 1))
	rest := string(raw)
	rest = rest[runes(rest, offset):]
	text := rest[:runes(rest, limit)]
	p := &Page{ID: id, Offset: offset, Total: k.chars, Text: text}
	if next := offset + utf8.RuneCountInString(text); next < k.chars {
		p.Next = next
	}
	return p, nil
}

// Result is a page as an agent reads it.
func (p *Page) Result() *tool.Result {
	note := "[This is the end of the result.]"
	if p.Next > 0 {
		note = fmt.Sprintf("[Characters %d to %d of %d. Go on with %s {\"id\":%q,\"offset\":%d}.]", p.Offset, p.Next, p.Total, ToolName, p.ID, p.Next)
	}
	return &tool.Result{Content: []tool.Content{tool.Text(p.Text), tool.Text(note)}}
}

// Tool is the provider of the built-in tool [ToolName].
type Tool struct {
	store *Store
	offer *provider.Offer
	shelf *provider.Shelf
}

// NewTool makes the provider. It is always ready.
func NewTool(s *Store) *Tool {
	yes, no := true, false
	return &Tool{store: s, shelf: newShelf(), offer: &provider.Offer{
		Status: provider.Status{State: provider.Ready},
		Tools: []tool.Definition{{
			Name: ToolName, OwnName: string(ToolName), Toolset: "results", Source: tool.SourceBuiltin, SourceName: "hermesd", Title: "Read a kept result",
			Description: "Read on in a result that was too big to be returned whole. The call that gave it tells the id and the offset.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"the id that the shortened result named"},` +
				`"offset":{"type":"integer","minimum":0,"default":0,"description":"where to begin, in characters"},` +
				`"limit":{"type":"integer","minimum":1,"default":20000,"description":"how many characters to return"}},` +
				`"required":["id"],"additionalProperties":false}`),
			Coldness:    tool.Cold,
			Annotations: tool.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no, ParallelSafe: &yes},
			Keywords:    []string{"rest", "truncated", "shortened", "continue"},
		}},
	}}
}

// Identity implements [provider.Provider].
func (t *Tool) Identity() provider.Identity {
	return provider.Identity{Name: "hermesd", Source: tool.SourceBuiltin, Parallel: true}
}

// Offer implements [provider.Provider].
func (t *Tool) Offer() *provider.Offer { return t.offer }

// Invoke implements [provider.Provider].
func (t *Tool) Invoke(_ context.Context, req *provider.Request) (*tool.Result, error) {
	var in struct {
		ID     string `json:"id"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	d := json.NewDecoder(bytes.NewReader(req.Call.Arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, tool.Errorf(tool.InvalidArguments, "the arguments are id (text), offset and limit (numbers): %w", err)
	}
	p, err := t.store.Read(req.Call.Agent, req.Call.Session, in.ID, in.Offset, in.Limit)
	if err != nil {
		return nil, err
	}
	return p.Result(), nil
}
