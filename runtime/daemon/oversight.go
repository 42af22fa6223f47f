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
func (a approvalDesk) Pending() []any { return anys(a.broker.List()) }

// Granted implements admin.Approvals.
func (a approvalDesk) Granted() []any { return anys(a.broker.Grants()) }

// Revoke implements admin.Approvals.
func (a approvalDesk) Revoke(ctx context.Context, id string) error { return a.broker.Revoke(ctx, id) }

// Answer implements admin.Approvals.
func (a approvalDesk) Answer(id string, d *admin.ApprovalAnswer) error {
	return a.broker.Answer(id, approval.Decision{Choice: approval.Choice(d.Choice), Reason: d.Reason, Pattern: d.Pattern, By: d.By})
}

// Watch implements admin.Approvals.
func (a approvalDesk) Watch() (<-chan any, func()) {
	events, stop := a.broker.Watch()
	out := make(chan any)
	ended := make(chan struct{})
	go func() {
		defer close(out)
		for e := range events {
			select {
			case out <- e:
			case <-ended:
				return
			}
		}
	}()
	return out, func() {
		stop()
		close(ended)
	}
}

// auditDesk is the audit as operators read it. It implements admin.Audit.
type auditDesk struct{ log *audit.Log }

// exportPage is how many records travel in one message.
const exportPage = 1000

func (a auditDesk) filter(f *admin.AuditFilter) *audit.Filter {
	return &audit.Filter{
		Agent: f.Agent, Tool: f.Tool, Outcome: tool.Outcome(f.Outcome), Kind: tool.RecordKind(f.Kind), CallID: f.CallID,
		Since: f.Since, Until: f.Until, After: f.After, Limit: f.Limit,
	}
}

// Query implements admin.Audit.
func (a auditDesk) Query(ctx context.Context, f *admin.AuditFilter) ([]any, error) {
	page, err := a.log.Query(ctx, a.filter(f))
	return anys(page), err
}

// Tail implements admin.Audit.
func (a auditDesk) Tail(ctx context.Context, f *admin.AuditFilter, fn func([]any) error) error {
	return a.log.Tail(ctx, a.filter(f), func(page []audit.Entry) error { return fn(anys(page)) })
}

// Export implements admin.Audit.
func (a auditDesk) Export(ctx context.Context, f *admin.AuditFilter, fn func([]any) error) error {
	next := a.filter(f)
	next.OldestFirst, next.Limit = true, exportPage
	for {
		page, err := a.log.Query(ctx, next)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := fn(anys(page)); err != nil {
			return err
		}
		next.After = page[len(page)-1].Seq
	}
}

// Verify implements admin.Audit.
func (a auditDesk) Verify(ctx context.Context) (any, bool, error) {
	report, err := a.log.Verify(ctx)
	if err != nil {
		return nil, false, err
	}
	return report, report.Fault == nil, nil
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
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
