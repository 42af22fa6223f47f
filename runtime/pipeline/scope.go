package pipeline

import (
	"context"

	"github.com/hermesd/hermesd/runtime/tool"
)

// scope finds the tool in the agent's view. From here on the call carries the tool's full name, however it was written.
func (p *Pipeline) scope(_ context.Context, e *Entry) *tool.Error {
	b, err := e.Request.View.Resolve(e.Call.Tool)
	if err != nil {
		return tool.AsError(err)
	}
	e.Definition, e.Provider = b.Definition, b.Provider
	e.Call.Tool = b.Definition.Name
	return nil
}
