package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// ServeStream serves one MCP client over a stream of newline-delimited messages until it or ctx ends. agent is a
// configured agent's name; "" is the local one. It is how a standalone daemon is reached, after [Daemon.Ready].
func (d *Daemon) ServeStream(ctx context.Context, agent string, rwc io.ReadWriteCloser) error {
	found, err := d.agent(agent)
	if err != nil {
		return err
	}
	return d.fronts.mcp.ServeStream(ctx, found, rwc)
}

// Call runs one call of an agent ("" is the local one) as a front end would: of a bridge tool, or of a tool by its own
// name. It is for measuring and testing without a front end, after [Daemon.Ready].
func (d *Daemon) Call(ctx context.Context, agent, name string, args json.RawMessage) (*tool.Result, error) {
	found, err := d.agent(agent)
	if err != nil {
		return nil, err
	}
	return d.desk.Dispatch(ctx, &frontend.Call{Agent: found, Session: d.desk.Session(found, "", "in-process"), Name: name, Arguments: args}), nil
}

func (d *Daemon) agent(name string) (*disclosure.Agent, error) {
	found, ok := d.agents.ByName(cmp.Or(name, config.LocalAgent))
	switch all := strings.Join(d.agents.names, ", "); {
	case ok:
	case name == "":
		return nil, fmt.Errorf("name an agent with --agent; there is: %s", all)
	default:
		return nil, fmt.Errorf("there is no agent %q; there is: %s", name, all)
	}
	return found, nil
}
