package daemon

import (
	"context"
	"errors"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/tool"
)

// approvalDesk is the broker as operators reach it. It implements admin.Approvals.
type approvalDesk struct{ broker *approval.Broker }

// Pending implements admin.Approvals.
func (a approvalDesk) Pending() ([][]byte, error) { return encoded(a.broker.List()) }

// Granted implements admin.Approvals.
func (a approvalDesk) Granted() ([][]byte, error) { return encoded(a.broker.Grants()) }

// Revoke implements admin.Approvals.
func (a approvalDesk) Revoke(ctx context.Context, id string) error { return a.broker.Revoke(ctx, id) }

// Answer implements admin.Approvals.
func (a approvalDesk) Answer(id string, d *admin.ApprovalAnswer) error {
	return a.broker.Answer(id, approval.Decision{Choice: approval.Choice(d.Choice), Reason: d.Reason, Pattern: d.Pattern, By: d.By})
}

// Watch implements admin.Approvals.
func (a approvalDesk) Watch(ctx context.Context, fn func([]byte) error) error {
	events, stop := a.broker.Watch()
	defer stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return nil
			}
			raw, err := tool.JSON(e)
			if err == nil {
				err = fn(raw)
			}
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// auditDesk is the audit as operators read it. It implements admin.Audit.
type auditDesk struct{ log *audit.Log }

func (a auditDesk) filter(f *admin.AuditFilter) *audit.Filter {
	return &audit.Filter{
		Agent: f.Agent, Tool: f.Tool, Outcome: tool.Outcome(f.Outcome), Kind: tool.RecordKind(f.Kind), CallID: f.CallID,
		Since: f.Since, Until: f.Until, After: f.After, Limit: f.Limit,
	}
}

// Query implements admin.Audit.
func (a auditDesk) Query(ctx context.Context, f *admin.AuditFilter) ([][]byte, error) {
	page, err := a.log.Query(ctx, a.filter(f))
	if err != nil {
		return nil, err
	}
	return encoded(page)
}

// Tail implements admin.Audit.
func (a auditDesk) Tail(ctx context.Context, f *admin.AuditFilter, fn func([][]byte) error) error {
	return a.log.Tail(ctx, a.filter(f), encodedTo(fn))
}

// Export implements admin.Audit.
func (a auditDesk) Export(ctx context.Context, f *admin.AuditFilter, fn func([][]byte) error) error {
	return a.log.Export(ctx, a.filter(f), encodedTo(fn))
}

func encodedTo(fn func([][]byte) error) func([]audit.Entry) error {
	return func(page []audit.Entry) error {
		out, err := encoded(page)
		if err != nil {
			return err
		}
		return fn(out)
	}
}

// Verify implements admin.Audit.
func (a auditDesk) Verify(ctx context.Context) (report []byte, sound bool, err error) {
	r, err := a.log.Verify(ctx)
	if err != nil {
		return nil, false, err
	}
	report, err = tool.JSON(r)
	return report, r.Fault == nil, err
}

// encoded is each of a list as JSON.
func encoded[T any](list []T) ([][]byte, error) {
	out := make([][]byte, len(list))
	for i := range list {
		raw, err := tool.JSON(&list[i])
		if err != nil {
			return nil, err
		}
		out[i] = raw
	}
	return out, nil
}

// oversee makes what stands between agents and their tools, from the bottom up: policy, hooks, approvals, guard, results.
func (d *Daemon) oversee() (err error) {
	if err := checkGroup(d.cfg.Approvals.Group); err != nil {
		return err
	}
	d.peers = &peers{group: d.cfg.Approvals.Group, providers: facts{d: d}.Providers, note: d.audit.Note}
	if d.hooks, err = newHooks(d.cfg, d.agents.toolsets, d.providers, d.logger); err != nil {
		return err
	}
	if d.guard, err = newGuard(d.cfg); err != nil {
		return err
	}
	if err := d.openResults(); err != nil {
		return err
	}
	return d.openApprovals()
}

// sessionEnded forgets what was kept for a session.
func (d *Daemon) sessionEnded(agent, session string) {
	d.approvals.EndSession(agent, session)
	d.guard.EndSession(agent, session)
	d.results.EndSession(agent, session)
}

// closeOversight ends it, in the opposite order.
func (d *Daemon) closeOversight() (err error) {
	err = d.approvals.end()
	if d.results.Store != nil {
		err = errors.Join(err, d.results.Close())
	}
	if d.hooks.Chain != nil {
		d.hooks.Close()
	}
	return err
}
