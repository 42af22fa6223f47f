package daemon

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ServeStream serves one MCP client over a stream of newline-delimited messages until it or ctx ends. agent is a
// configured agent's name; "" is the local one. It is how a standalone daemon is reached, after [Daemon.Ready].
func (d *Daemon) ServeStream(ctx context.Context, agent string, rwc io.ReadWriteCloser) error {
	if agent == "" {
		agent = localAgent
	}
	found, ok := d.agents.ByName(agent)
	if !ok {
		return fmt.Errorf("no agent is named %q; configured are: %s", agent, strings.Join(slices.Sorted(slices.Values(d.agents.names)), ", "))
	}
	return d.fronts.mcp.ServeStream(ctx, found, rwc)
}
