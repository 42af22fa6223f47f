package disclosure

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// bridgeTools returns the three definitions. Without a listing they stay under 2 KB together, in every tier.
//
// Their schemas are plain: every model API and MCP client accepts them. What the handlers accept beyond them is nobody's
// business to know.
func bridgeTools(a *Assembly) []Tool {
	n := a.Settings.Names
	quick := tool.Annotations{ReadOnly: new(true), Idempotent: new(true), OpenWorld: new(false)}
	made := func(name tool.Name, title, description, schema string, annotations tool.Annotations) Tool {
		return Tool{
			Name: name, Title: title, Description: description, InputSchema: json.RawMessage(schema),
			Annotations: annotations, Meta: json.RawMessage(alwaysLoadMeta), Bridge: true,
		}
	}
	return []Tool{
		made(n.Search, "Search tools", searchText(a), fmt.Sprintf(searchSchema, a.Settings.MaxSearchLimit, a.Settings.SearchDefaultLimit), quick),
		made(n.Describe, "Describe tools", fmt.Sprintf(describeText, n.Call), describeSchema, quick),
		made(n.Call, "Call tools", fmt.Sprintf(callText, n.Describe), callSchema, tool.Annotations{}),
	}
}

// searchText teaches when to search, when not to, and how, and tells what there is.
func searchText(a *Assembly) string {
	n := a.Settings.Names
	var b strings.Builder
	fmt.Fprintf(&b, "Find tools that are not in your list; returns exact names. If the exact name is in view, skip the search and use %s or %s. "+
		"Before you say that something is missing or cannot be done, search for it. "+
		`Write a query as service, action, object ("github create issue"), one need a query.`, n.Describe, n.Call)
	if a.Listing == "" {
		return b.String()
	}
	b.WriteString(" Never call a listed tool unavailable.")
	if a.Tier == TierSources {
		b.WriteString(" A source with a number alone has tools that only a search shows.")
	}
	b.WriteString("\n\n")
	b.WriteString(strings.TrimRight(a.Listing, "\n"))
	return b.String()
}

const (
	describeText = "Full descriptions and parameters of tools from the search or the listing. Use it before the first %s of a tool whose parameters you have not seen."
	callText     = "Run tools from the search or the listing. Arguments must fit the parameters that %s shows. Each entry has its own result; one that fails stops no other."

	searchSchema = `{"type":"object","properties":{` +
		`"queries":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":7},` +
		`"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Matches a query; default %d"}},` +
		`"required":["queries"],"additionalProperties":false}`

	describeSchema = `{"type":"object","properties":{` +
		`"names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10,"description":"Exact names"}},` +
		`"required":["names"],"additionalProperties":false}`

	callSchema = `{"type":"object","properties":{` +
		`"calls":{"type":"array","minItems":1,"maxItems":10,"items":{"type":"object","properties":{` +
		`"name":{"type":"string","description":"Exact name"},` +
		`"arguments":{"type":"object","description":"The tool's own arguments"}},` +
		`"required":["name","arguments"],"additionalProperties":false}}},` +
		`"required":["calls"],"additionalProperties":false}`
)
