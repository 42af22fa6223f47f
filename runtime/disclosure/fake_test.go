package disclosure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/hermesd/hermesd/runtime/catalog"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// fake is a provider that offers what a test says and runs nothing.
type fake struct {
	identity provider.Identity
	offer    atomic.Pointer[provider.Offer]
}

func (f *fake) Identity() provider.Identity { return f.identity }
func (f *fake) Offer() *provider.Offer      { return f.offer.Load() }
func (f *fake) Invoke(context.Context, *provider.Request) (*tool.Result, error) {
	return nil, errors.New("disclosure never invokes")
}

func (f *fake) status(state provider.State) {
	next := *f.offer.Load()
	next.Status.State = state
	f.offer.Store(&next)
}

func offering(source tool.Source, label string, tools ...tool.Definition) *fake {
	f := &fake{identity: provider.Identity{Name: label, Source: source}}
	for i := range tools {
		d := &tools[i]
		d.Source, d.SourceName = source, label
		if d.OwnName == "" {
			d.OwnName = d.Name
		}
		if d.InputSchema == nil {
			d.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		if source == tool.SourceMCP {
			d.Name = tool.FullName("mcp", label, d.OwnName)
		}
		if d.Coldness == "" {
			d.Coldness = tool.External
		}
	}
	f.offer.Store(&provider.Offer{Tools: tools, Status: provider.Status{State: provider.Ready}})
	return f
}

// server is an MCP server with n tools that look like real ones.
func server(label string, n int) *fake {
	verbs, objects := []string{"create", "update", "delete", "list", "get"}, []string{"issue", "page", "user", "record", "webhook", "comment"}
	var tools []tool.Definition
	for i := range n {
		verb, object := verbs[i%len(verbs)], objects[i/len(verbs)%len(objects)]
		name := fmt.Sprintf("%s_%s", verb, object)
		if i >= len(verbs)*len(objects) {
			name = fmt.Sprintf("%s_%d", name, i/(len(verbs)*len(objects)))
		}
		tools = append(tools, tool.Definition{
			Name:        name,
			Description: fmt.Sprintf("%s one %s of %s, e.g. the newest. The caller needs the right to do so, and the answer holds the %s as it is afterwards.", strings.ToUpper(verb[:1])+verb[1:]+"s", object, label, object),
			InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"id":{"type":"string","description":"Identifier of the %[1]s, as the list gives it"},"title":{"type":"string","description":"What the %[1]s is called"},"tags":{"type":"array","items":{"type":"string"},"description":"Labels, each at most 40 characters"},"dry_run":{"type":"boolean","description":"Only say what would happen","default":false}},"required":["id"]}`, object)),
		})
	}
	return offering(tool.SourceMCP, label, tools...)
}

// files is a built-in with core tools and a cold one.
func files() *fake {
	return offering(tool.SourceBuiltin, "files",
		tool.Definition{Name: "files_read", Description: "Reads a file.", Coldness: tool.Core},
		tool.Definition{Name: "files_write", Description: "Writes a file.", Coldness: tool.Core, Meta: json.RawMessage(`{"z":1,"a":"<b>"}`)},
		tool.Definition{Name: "todo_list", Description: "Keeps a list of what is to be done.", Coldness: tool.Cold},
	)
}

func catalogOf(providers ...*fake) *catalog.Catalog {
	var list []provider.Provider
	for _, p := range providers {
		list = append(list, p)
	}
	c := catalog.New(nil)
	c.SetProviders(list)
	return c
}
