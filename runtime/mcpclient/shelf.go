package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var _ provider.Library = (*Provider)(nil)

// stock is what a server lists besides tools, as it lists it.
type stock struct {
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"templates,omitempty"`
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
}

func (s *stock) digest() digest {
	all := make([]json.RawMessage, 0, len(s.Resources)+len(s.Templates)+len(s.Prompts)+2)
	all = append(append(all, s.Resources...), nil)
	all = append(append(all, s.Templates...), nil)
	return digestOf(append(all, s.Prompts...))
}

// Shelf implements [provider.Library].
func (p *Provider) Shelf() *provider.Shelf { return p.shelf.Load() }

// takeStock reads the lists that the options ask for and the server says it has.
func (s *session) takeStock(ctx context.Context) (*stock, error) {
	found := &stock{}
	var errs [3]error
	if s.p.opts.Resources && s.has.Resources != nil {
		found.Resources, errs[0] = s.list(ctx, "resources/list", "resources")
		found.Templates, errs[1] = s.list(ctx, "resources/templates/list", "resourceTemplates")
	}
	if s.p.opts.Prompts && s.has.Prompts != nil {
		found.Prompts, errs[2] = s.list(ctx, "prompts/list", "prompts")
	}
	return found, oneLine(errs[:])
}

// oneLine joins errors as a log and a status have them.
func oneLine(errs []error) error {
	var all error
	for _, err := range errs {
		switch {
		case err == nil:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// publishShelf offers what the server has now, and keeps it for the next run.
func (p *Provider) publishShelf(found *stock) {
	if p.restock(found) {
		p.keep()
		p.opts.OnChange()
	}
}

// restock reports whether the stock differs from the one that is offered.
func (p *Provider) restock(found *stock) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opts.Resources && !p.opts.Prompts || found.digest() == p.kept.digest() {
		return false
	}
	p.kept.stock = *found
	p.shelf.Store(p.arrange(found))
	return true
}

// arrange makes a shelf of a server's lists. What has no name is left out; of two of one name the first counts.
func (p *Provider) arrange(found *stock) *provider.Shelf {
	space := p.namespace()
	uri := func(own string) string { return space + own }
	return &provider.Shelf{
		Namespace: space, Timeout: p.opts.Timeout,
		Resources: p.items(found.Resources, "uri", uri),
		Templates: p.items(found.Templates, "uriTemplate", uri),
		Prompts:   p.items(found.Prompts, "name", p.fullName),
	}
}

// namespace is what stands before the server's URIs: "mcp://NAME/", so that two servers' "file:///a" are two things; or
// nothing, if its tools' names have no prefix either.
func (p *Provider) namespace() string {
	if p.opts.Prefix != nil && *p.opts.Prefix == "" {
		return ""
	}
	return "mcp://" + p.opts.Name + "/"
}

func (p *Provider) items(raws []json.RawMessage, key string, rename func(string) string) []provider.Item {
	var list []provider.Item
	seen := map[string]bool{}
	for i, raw := range raws {
		own := ""
		rawjson.Members(raw, func(k string, value json.RawMessage) {
			if k == key {
				own, _ = rawjson.String(value)
			}
		})
		name := rename(own)
		switch {
		case own == "" || len(own) > maxDefinition || len(raw) > maxDefinition:
			p.log.Warn("the server listed something without a usable name; it is left out", "key", key, "position", i)
			continue
		case seen[name]:
			continue
		}
		seen[name] = true
		list = append(list, provider.Item{Name: name, Own: own, Raw: withMember(raw, key, name)})
	}
	return list
}

// withMember is an object in which one member has another text as its value. All else stays as it is.
func withMember(raw json.RawMessage, key, text string) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	rawjson.Members(raw, func(k string, value json.RawMessage) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		writeString(&b, k)
		b.WriteByte(':')
		switch {
		case k == key:
			writeString(&b, text)
		case k == "_meta":
			if value = withoutReserved(value); value == nil {
				value = json.RawMessage("{}")
			}
			b.Write(value)
		default:
			b.Write(value)
		}
	})
	b.WriteByte('}')
	return b.Bytes()
}

// subscribeTo tells the SDK which list changes to subscribe to (since 2026-07-28): those that have a handler. The line hears
// of them before the SDK does, and does not pass them on.
func (s *session) subscribeTo(o *mcp.ClientOptions) {
	o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) {}
	if s.p.opts.Resources {
		o.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) {}
	}
	if s.p.opts.Prompts {
		o.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) {}
	}
}
