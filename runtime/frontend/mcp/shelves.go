package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
)

// dispatcherURI is to resources what [dispatcher] is to tools, and the prompt of that name to prompts.
const dispatcherURI = "hermesd:dispatch"

// The methods of resources and prompts.
const (
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodListPrompts   = "prompts/list"
)

// shelves are the resources and prompts that an agent may use, over all libraries of its view. Where two libraries have
// one of the same name (which takes prefix = "" in both), it is the first one's; one in the namespace of another provider is
// left out.
type shelves struct {
	from      []shelf
	snapshot  *catalog.Snapshot
	lists     map[string]json.RawMessage // by method
	digests   [2][sha256.Size]byte       // of resources and templates, of prompts
	prompts   map[string]place
	uris      map[string]place // of listed resources, as agents see them
	templates map[string]place // as agents see them
	refused   []trespasser
}

// trespasser is a resource, template or prompt that nobody sees, because its name is another provider's.
type trespasser struct{ provider, name, reason string }

// shelf is one library at one moment.
type shelf struct {
	library provider.Library
	stock   *provider.Shelf
}

// place is where a prompt or a resource is.
type place struct {
	library provider.Library
	own     string // what the library calls it
	space   string // what stands before the URIs of what is read there
}

func newShelves(from []shelf, snapshot *catalog.Snapshot) *shelves {
	s := &shelves{
		from: from, snapshot: snapshot, lists: map[string]json.RawMessage{},
		prompts: map[string]place{}, uris: map[string]place{}, templates: map[string]place{},
	}
	s.lists[methodListResources] = s.gather(s.uris, func(x *provider.Shelf) []provider.Item { return x.Resources })
	s.lists[methodListTemplates] = s.gather(s.templates, func(x *provider.Shelf) []provider.Item { return x.Templates })
	s.lists[methodListPrompts] = s.gather(s.prompts, func(x *provider.Shelf) []provider.Item { return x.Prompts })
	s.digests[0] = sha256.Sum256(bytes.Join([][]byte{s.lists[methodListResources], s.lists[methodListTemplates]}, []byte{0}))
	s.digests[1] = sha256.Sum256(s.lists[methodListPrompts])
	return s
}

// gather writes one list of all libraries, and notes where each item is.
func (s *shelves) gather(places map[string]place, items func(*provider.Shelf) []provider.Item) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for _, f := range s.from {
		for _, item := range items(f.stock) {
			if _, taken := places[item.Name]; taken {
				continue
			}
			if reason := s.snapshot.Trespass(f.library, item.Name); reason != "" {
				s.refused = append(s.refused, trespasser{f.library.Identity().Name, item.Name, reason})
				continue
			}
			places[item.Name] = place{f.library, item.Own, f.stock.Namespace}
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(item.Raw)
		}
	}
	b.WriteByte(']')
	return b.Bytes()
}

// resource finds where a URI is read. Agents meet URIs in two forms: in lists, with their library's namespace, and in
// results of tools, which pass unchanged, as the server wrote them. One of the second form is found if a single library
// lists it, has a template that begins like it, or is the only one there is.
func (s *shelves) resource(uri string) (place, bool) {
	if p, ok := s.uris[uri]; ok {
		return p, true
	}
	for _, f := range s.from {
		if own, ok := strings.CutPrefix(uri, f.stock.Namespace); ok && f.stock.Namespace != "" {
			return place{f.library, own, f.stock.Namespace}, true
		}
	}
	for _, fits := range []func(*provider.Shelf) bool{
		func(x *provider.Shelf) bool {
			return slices.ContainsFunc(x.Resources, func(i provider.Item) bool { return i.Own == uri })
		},
		func(x *provider.Shelf) bool {
			return slices.ContainsFunc(x.Templates, func(i provider.Item) bool { return begins(i.Own, uri) })
		},
		func(x *provider.Shelf) bool { return !x.Closed },
	} {
		var found []shelf
		for _, f := range s.from {
			if fits(f.stock) && s.snapshot.Trespass(f.library, uri) == "" {
				found = append(found, f)
			}
		}
		if len(found) == 1 {
			return place{library: found[0].library, own: uri}, true
		}
		if len(found) > 1 {
			return place{}, false
		}
	}
	return place{}, false
}

// begins reports whether a URI starts as a template does before its first expression.
func begins(template, uri string) bool {
	fixed, _, _ := strings.Cut(template, "{")
	return fixed != "" && strings.HasPrefix(uri, fixed)
}

// template finds the library of a template, for a completion.
func (s *shelves) template(uri string) (place, bool) {
	if p, ok := s.templates[uri]; ok {
		return p, true
	}
	return s.resource(uri)
}

// shelves are those of this moment. Clients hear of a list only if its bytes changed.
func (a *agentServer) shelves() *shelves {
	from, snapshot := a.stock()
	if s := a.shelved.Load(); s.current(from, snapshot) {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	from, snapshot = a.stock()
	last := a.shelved.Load()
	if last.current(from, snapshot) {
		return last
	}
	made := newShelves(from, snapshot)
	a.shelved.Store(made)
	for _, r := range made.refused {
		if last == nil || !slices.Contains(last.refused, r) {
			a.owner.options.Logger.Warn("something that a server offers is refused", "provider", r.provider, "name", r.name, "reason", r.reason)
		}
	}
	if last == nil || last.digests[0] != made.digests[0] {
		a.announceResources()
	}
	if last == nil || last.digests[1] != made.digests[1] {
		a.announcePrompts()
	}
	return made
}

// current reports whether the shelves are made of these.
func (s *shelves) current(from []shelf, snapshot *catalog.Snapshot) bool {
	return s != nil && s.snapshot == snapshot && slices.Equal(s.from, from)
}

func (a *agentServer) stock() ([]shelf, *catalog.Snapshot) {
	view := a.owner.options.Desk.Disclosure.For(a.agent.Load()).View
	var list []shelf
	for _, library := range view.Libraries() {
		if stock := library.Shelf(); stock != nil {
			list = append(list, shelf{library, stock})
		}
	}
	return list, view.Snapshot()
}

func (a *agentServer) announceResources() {
	a.sdk.AddResource(&sdk.Resource{URI: dispatcherURI, Name: dispatcher}, a.dispatchRead)
}

func (a *agentServer) announcePrompts() {
	a.sdk.AddPrompt(&sdk.Prompt{Name: dispatcher}, a.dispatchPrompt)
}
