package daemon

import (
	"context"

	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/results"
	"github.com/hermesd/hermesd/runtime/tool"
)

// keptResults is where results stay that are too big for an agent. It implements the results of package pipeline.
type keptResults struct{ *results.Store }

func (d *Daemon) openResults() (err error) {
	d.results.Store, err = results.Open(&results.Options{
		Dir: d.dirs.state, MaxChars: d.cfg.Tools.MaxResultChars, Quota: int64(d.cfg.Tools.ResultQuota), Logger: d.logger,
	})
	return err
}

// Page implements functions.Results.
func (k keptResults) Page(agent, session, id string, offset, limit int) (any, *tool.Error) {
	p, err := k.Read(agent, session, id, offset, limit)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Fit implements the results of package pipeline.
func (k keptResults) Fit(_ context.Context, e *pipeline.Entry, r *tool.Result) (*tool.Result, *tool.Error) {
	return k.Store.Fit(e.Call.Agent, e.Call.Session, r), nil
}
