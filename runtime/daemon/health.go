package daemon

import (
	"context"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// healthWait is how long the database may take to answer a health check.
const healthWait = 2 * time.Second

// healthy says why calls cannot run at the moment: the database does not answer, or a call could not be recorded.
func (d *Daemon) healthy() error {
	ctx, cancel := context.WithTimeout(context.Background(), healthWait)
	defer cancel()
	if err := d.store.Read().PingContext(ctx); err != nil {
		return tool.Errorf(tool.Internal, "the state database does not answer: %w", err)
	}
	if err := d.audit.Blocked(); err != nil {
		return tool.Errorf(tool.AuditUnavailable, "no call runs, since none can be recorded: %w", err)
	}
	return nil
}
