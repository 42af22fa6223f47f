package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hermesd/hermesd/hooks"
	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/hooks/webhook"
	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// approvals asks humans about calls. It implements the approvals of package pipeline.
type approvals struct {
	*approval.Broker
	webhook approval.Channel // nil without one
}

// openApprovals makes the broker and its channels.
func (d *Daemon) openApprovals() error {
	key, err := approval.LoadKey(d.dirs.state)
	if err != nil {
		return err
	}
	block := &d.cfg.Approvals
	wait := block.Wait
	if wait == 0 {
		wait = -1 // the broker's "not at all"
	}
	settings := approval.Settings{Mode: approval.Mode(block.Mode), Wait: wait, Timeout: block.Timeout, Policy: d.policy.Version()}
	if block.Webhook != "" {
		var link func(*approval.Pending) (string, error)
		if !d.options.Standalone && d.cfg.Listen.HTTP != "off" {
			link = d.answerLink
		}
		if d.approvals.webhook, err = approval.NewWebhook(&webhook.Options{URL: block.Webhook, Secret: block.Secret}, link); err != nil {
			return err
		}
		settings.Channels = append(settings.Channels, d.approvals.webhook)
	}
	d.approvals.Broker, err = approval.New(context.Background(), &approval.Options{
		Settings: settings, Store: approval.NewSQL(d.store), Key: key, Mask: d.secrets.Mask,
		OnAsked: d.approvalAsked, OnClosed: d.approvalClosed, Logger: d.logger,
	})
	return err
}

// answerLink is where a human answers a request; "" if no name is known by which people reach this machine.
func (d *Daemon) answerLink(p *approval.Pending) (string, error) {
	base := d.cfg.Listen.Reach(d.fronts.httpListener.Addr().String())
	if base == "" {
		return "", nil
	}
	return d.approvals.Link(base, p)
}

// Close voids what is open. It may be called more than once, and on approvals that were never opened.
func (a *approvals) Close() {
	if a.Broker != nil {
		a.Broker.Close()
	}
}

func (a *approvals) end() (err error) {
	a.Close()
	if c, ok := a.webhook.(io.Closer); ok {
		err = c.Close()
	}
	return err
}

// Ask implements the approvals of package pipeline.
func (a *approvals) Ask(ctx context.Context, entries []*pipeline.Entry) []pipeline.Answer {
	first := entries[0].Request // one batch has one client
	ask := &approval.Ask{Suspendable: first.Suspendable, Resume: first.Resume}
	for _, e := range entries {
		ask.Requests = append(ask.Requests, requestOf(e))
	}
	if host := first.Host; host != nil {
		ask.Progress = func(elapsed time.Duration) { tellPatience(host, elapsed) }
		if host.OnAsk != nil && !first.Suspendable {
			ask.Client = approval.NewForm(elicit(host))
		}
	}
	answers := make([]pipeline.Answer, len(entries))
	for i, x := range a.Broker.Ask(ctx, ask) {
		answers[i] = pipeline.Answer{ID: x.ID, By: x.By, Err: x.Err, Suspend: x.Suspend}
	}
	return answers
}

// Redeem implements the approvals of package pipeline.
func (a *approvals) Redeem(_ context.Context, e *pipeline.Entry) *tool.Error {
	return a.Broker.Redeem(e.Answer.ID, requestOf(e))
}

// requestOf is what a human is asked about a call: the same for asking and for redeeming, unless something has changed.
func requestOf(e *pipeline.Entry) *approval.Request {
	r := &approval.Request{
		CallID: e.Call.ID, Agent: e.Call.Agent, Session: e.Call.Session, Attended: e.Call.Attended,
		Definition: e.Definition, Arguments: e.Call.Arguments, Policy: e.Decision.Policy, Floor: e.Decision.Floor,
	}
	var who, why, keys []string
	if e.Verdict.Action == pipeline.Ask {
		who, why = append(who, "hook "+e.Verdict.Hook), append(why, e.Verdict.Message)
		keys = append(keys, hookKey(&e.Verdict))
	}
	if d := &e.Decision; d.Action == pipeline.Ask {
		who, why = append(who, "rule "+d.Rule), append(why, d.Reason)
		keys = append(keys, d.Key)
		r.Choices = choices(d.Grants)
	}
	r.Rule = strings.Join(who, " and ")
	r.Reason = strings.Join(slices.DeleteFunc(why, func(s string) bool { return s == "" }), "; ")
	if !slices.Contains(keys, "") { // a hook that names no reason is asked each time
		r.Key = strings.Join(keys, " and ")
	}
	return r
}

// hookKey is what a grant that answers a hook is bound to: quoted, so that no hook can name a key that reads like a rule's.
func hookKey(v *pipeline.Verdict) string {
	if v.RuleKey == "" {
		return ""
	}
	return fmt.Sprintf("hook %s %q", v.Hook, v.RuleKey)
}

// choices are the grants that a rule offers; nil, for all, where it says nothing.
func choices(grants []string) []approval.Choice {
	if grants == nil {
		return nil
	}
	list := []approval.Choice{}
	for _, g := range grants {
		list = append(list, approval.Choice(g))
	}
	return list
}

// elicit asks through the agent's own client, while the call waits.
func elicit(host *provider.Host) approval.Elicit {
	return func(ctx context.Context, message string, schema json.RawMessage) (string, json.RawMessage, error) {
		a, err := host.Ask(ctx, provider.Question{Message: message, Schema: schema})
		return a.Action, a.Content, err
	}
}

// tellPatience keeps a client patient while a human thinks. The steps are tiny: progress must grow (MCP 2025-11-25,
// progress), and the tool's own comes after it.
func tellPatience(host *provider.Host, elapsed time.Duration) {
	host.Progress(tool.Progress{Done: elapsed.Seconds() / 1e6, Note: fmt.Sprintf("waiting for a human's approval, %s so far", elapsed.Round(time.Second))})
}

// approvalAsked and approvalClosed put every question and its end on record, and tell the hooks.
func (d *Daemon) approvalAsked(p *approval.Pending) {
	d.audit.Note(recordOf(p, tool.RecordAsked))
	d.hooks.ApprovalAsked(d.askedCall(p), hookApproval(p))
}

func (d *Daemon) approvalClosed(c *approval.Closed) {
	r := recordOf(&c.Request, tool.RecordAnswered)
	r.By, r.Code, r.Outcome = c.Decision.By, c.Code, tool.OutcomeOf(c.Code)
	d.audit.Note(r)
	a := hookApproval(&c.Request)
	a.Choice, a.By, a.Note = string(c.Decision.Choice), c.Decision.By, c.Decision.Reason
	d.hooks.ApprovalAnswered(d.askedCall(&c.Request), a)
}

func recordOf(p *approval.Pending, kind tool.RecordKind) *tool.Record {
	return &tool.Record{
		Kind: kind, CallID: p.CallID, Agent: p.Agent, Session: p.Session, Tool: p.Tool, Source: p.Source, SourceName: p.SourceName,
		Rule: p.Rule, Approval: p.ID,
	}
}

func hookApproval(p *approval.Pending) *hooks.Approval {
	a := &hooks.Approval{ID: p.ID, Rule: p.Rule, Reason: p.Reason}
	for _, c := range p.Choices {
		a.Choices = append(a.Choices, string(c))
	}
	return a
}

// askedCall is the call of a request as hooks see it. Its definition is the catalog's, if the tool is still there.
func (d *Daemon) askedCall(p *approval.Pending) *hooks.Call {
	c := &hooks.Call{Call: &tool.Call{ID: p.CallID, Agent: p.Agent, Session: p.Session, Tool: p.Tool, Arguments: p.Arguments}}
	c.Definition = &tool.Definition{Name: p.Tool, Title: p.Title, Source: p.Source, SourceName: p.SourceName, Annotations: p.Hints}
	for _, e := range d.catalog.Snapshot().Entries() {
		if e.Definition.Name == p.Tool {
			c.Definition = e.Definition
			break
		}
	}
	return c
}
