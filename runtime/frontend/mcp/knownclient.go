package mcp

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/rawjson"
)

// knownClient is what a request of protocol 2026-07-28 says about its client. It is not changed.
type knownClient struct {
	info, caps json.RawMessage // as it came
	name       string
	can        *sdk.ClientCapabilities
}

// maxKnown bounds what is kept of a client, in bytes.
const maxKnown = 8 << 10

// lastClient is the client of the last request: each request says all about its client again, and many come from one.
type lastClient struct{ known atomic.Pointer[knownClient] }

// read reads who a client is and what it can do; nil if that is not as the protocol has it. It keeps neither info nor caps.
func (l *lastClient) read(info, caps json.RawMessage) *knownClient {
	if k := l.known.Load(); k != nil && bytes.Equal(k.info, info) && bytes.Equal(k.caps, caps) {
		return k
	}
	var client sdk.Implementation
	if info != nil && json.Unmarshal(info, &client) != nil {
		return nil
	}
	var can struct {
		sdk.ClientCapabilities
		Roots *sdk.RootCapabilities `json:"roots"` // the SDK's own cannot tell absent from empty
	}
	if rawjson.IsNull(caps) || json.Unmarshal(caps, &can) != nil {
		return nil
	}
	can.RootsV2 = can.Roots
	k := &knownClient{name: client.Name, can: &can.ClientCapabilities}
	if len(info)+len(caps) <= maxKnown {
		k.info, k.caps = bytes.Clone(info), bytes.Clone(caps)
		l.known.Store(k)
	}
	return k
}
