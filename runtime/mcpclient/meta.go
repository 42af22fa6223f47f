package mcpclient

import (
	"encoding/json"
	"fmt"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ability is what a caller's client can be asked for, as a set of bits.
type ability uint8

const (
	canElicit ability = 1 << iota
	canSample
	canListRoots
	canTakeTasks
	canEverything = canElicit | canSample | canListRoots | canTakeTasks
)

// abilitiesOf says what stands behind a host. Requests that no agent made claim everything.
func abilitiesOf(h *provider.Host) ability {
	if h == nil {
		return 0
	}
	var a ability
	if h.OnAsk != nil {
		a |= canElicit
	}
	if h.OnSample != nil {
		a |= canSample
	}
	if h.OnRoots != nil {
		a |= canListRoots
	}
	if h.OnTask != nil {
		a |= canTakeTasks
	}
	return a
}

// requestMeta is what every request of protocol 2026-07-28 carries in its _meta, by what the caller's client can do: a
// server of that protocol asks for nothing that the request does not offer. It is empty for older protocols.
type requestMeta [canEverything + 1]string

func newRequestMeta(version string, client *mcp.Implementation) (*requestMeta, error) {
	info, err := json.Marshal(client)
	if err != nil {
		return nil, err
	}
	m := &requestMeta{}
	for a := range m {
		caps, err := json.Marshal(ability(a).capabilities())
		if err != nil {
			return nil, err
		}
		m[a] = fmt.Sprintf(`%q:%q,%q:%s,%q:%s,`, mcp.MetaKeyProtocolVersion, version, mcp.MetaKeyClientInfo, info, mcp.MetaKeyClientCapabilities, caps)
	}
	return m, nil
}

// capabilities are MCP's ClientCapabilities without what is not there: the SDK's type always writes roots.
func (a ability) capabilities() map[string]any {
	caps := map[string]any{}
	if a&canElicit != 0 {
		caps["elicitation"] = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if a&canSample != 0 {
		caps["sampling"] = &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}}
	}
	if a&canListRoots != 0 {
		caps["roots"] = struct{}{}
	}
	if a&canTakeTasks != 0 {
		caps["extensions"] = map[string]any{tasksExtension: struct{}{}}
	}
	return caps
}
