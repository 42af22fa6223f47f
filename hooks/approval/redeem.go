package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// ticket is an approval that can be used once.
type ticket struct {
	binding sum
	expires time.Time
	grant   string // the grant that it rests on; "" if a human approved this very call
}

type ticketKey struct{ call, id string }

// sweepTickets is the number of unused tickets from which expired ones are looked for.
const sweepTickets = 4096

func (b *Broker) issue(id string, r *Request, grant string) {
	now := time.Now()
	if len(b.tickets) >= sweepTickets {
		maps.DeleteFunc(b.tickets, func(_ ticketKey, t *ticket) bool { return !now.Before(t.expires) })
	}
	binding := r.binding()
	b.tickets[ticketKey{r.CallID, id}] = &ticket{binding.sum(), now.Add(b.settings.Timeout), grant}
}

// Redeem uses an approval up, directly before its call runs. r is the call as it would be run, id the approval's from its
// [Answer]. It refuses when anything that the approval is bound to has changed, and when it was used before.
func (b *Broker) Redeem(id string, r *Request) *tool.Error {
	b.mu.Lock()
	defer b.unlock()
	key := ticketKey{r.CallID, id}
	t := b.tickets[key]
	delete(b.tickets, key)
	binding := r.binding()
	switch {
	case t == nil:
		return refuseVoid(r, "it was used already, or was never given")
	case r.Policy != b.settings.Policy:
		return refuseVoid(r, "the policy has changed")
	case t.binding != binding.sum():
		return refuseVoid(r, "the call is not the one that was approved")
	case !time.Now().Before(t.expires):
		return refuseVoid(r, "it has expired")
	case t.grant != "" && b.grants[t.grant] == nil:
		return refuseVoid(r, "the grant that it rests on was revoked")
	case b.settings.Mode == DenyAll:
		return refuseVoid(r, "the operator refuses all approvals now")
	}
	return nil
}

func refuseVoid(r *Request, why string) *tool.Error {
	return tool.Errorf(tool.ApprovalVoid, "%s was not run: its approval does not hold: %s; make the call again to be asked again", r.Definition.Name, why)
}

func refusePending(r *Request, it *item) *tool.Error {
	left := time.Until(it.Expires).Round(time.Second)
	return tool.Errorf(tool.ApprovalPending, "%s has not run yet: a human is being asked (approval %s) and has %s left to answer. Make the very same call again to wait for the answer, or go on with something else", r.Definition.Name, it.ID, left).
		With("approval", it.ID).With("expires_in_s", int(left.Seconds()))
}

// refuse is what an agent reads when nobody said yes. The three ways have three codes.
func refuse(r *Request, it *item, timeout time.Duration) *tool.Error {
	name, d := r.Definition.Name, it.decision
	switch it.code {
	case tool.ApprovalDenied:
		why := "without a reason"
		if d.Reason != "" {
			why = "and said: " + d.Reason
		}
		return tool.Errorf(tool.ApprovalDenied, "%s was not run: a human refused it %s. Do not try to reach the same in another way; ask the user what to do instead", name, why).With("approval", it.ID)
	case tool.ApprovalTimeout:
		why := fmt.Sprintf("nobody answered within %s", timeout)
		if d.Reason != "" {
			why = d.Reason
		}
		return tool.Errorf(tool.ApprovalTimeout, "%s was not run: %s. Silence is not consent: do not try to reach the same in another way; tell the user that this needs an answer", name, why).With("approval", it.ID)
	case tool.NobodyAsked:
		return tool.Errorf(tool.NobodyAsked, "%s was not run: it needs a human's approval and nobody could be asked (%s); tell the user, or go on without it", name, d.Reason).With("approval", it.ID)
	case tool.ShuttingDown:
		return tool.Errorf(tool.ShuttingDown, "%s was not run: the daemon is stopping", name)
	default:
		return refuseVoid(r, d.Reason)
	}
}

func (b *Broker) addGrant(it *item, d *Decision) string {
	g := &Grant{
		ID: newID(), Kind: d.Choice, Agent: it.Agent, Tool: it.Tool, Source: it.binding.Source, Key: it.rule, Pattern: d.Pattern,
		By: d.By, Created: time.Now(),
	}
	b.grants[g.ID] = g
	if g.Kind == Session {
		g.Session = it.Session
	} else {
		b.stored("new grant", func(ctx context.Context) error { return b.store.AddGrant(ctx, g) })
	}
	return g.ID
}

// Grants lists the grants that hold, oldest first.
func (b *Broker) Grants() []Grant {
	b.mu.Lock()
	defer b.unlock()
	list := make([]Grant, 0, len(b.grants))
	for _, g := range b.grants {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(x, y Grant) int {
		return cmp.Or(x.Created.Compare(y.Created), strings.Compare(x.ID, y.ID))
	})
	return list
}

// ErrUnknown is the error for an id that nothing is known of.
var ErrUnknown = errors.New("is not known")

// Revoke ends a grant. Calls that were let in by it and have not started are refused, too.
func (b *Broker) Revoke(ctx context.Context, id string) error {
	var err error
	b.mu.Lock()
	g := b.grants[id]
	delete(b.grants, id)
	if g != nil && g.Kind == Always {
		b.write(ctx, func(ctx context.Context) error { return b.store.RemoveGrant(ctx, id) }, func(failed error) { err = failed })
	}
	b.unlock()
	switch {
	case g == nil:
		return fmt.Errorf("grant %.40q %w; list them with `hermesd approvals grants`", id, ErrUnknown)
	case err != nil:
		return fmt.Errorf("grant %s holds no more, but would come back with the next start: %w", id, err)
	}
	return nil
}

// EndSession ends the grants of a session that is over, and what is open in it.
func (b *Broker) EndSession(agent, session string) {
	b.mu.Lock()
	defer b.unlock()
	maps.DeleteFunc(b.grants, func(_ string, g *Grant) bool {
		return g.Kind == Session && g.Agent == agent && g.Session == session
	})
	for _, it := range b.items {
		if it.Agent == agent && it.Session == session {
			b.close(it, tool.ApprovalVoid, Decision{Reason: "the session is over"})
			b.drop(it)
		}
	}
}
