package pluginhost

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxDelegations is how many delegations a plugin can hold.
const maxDelegations = 64

// Delegation lets a plugin call one tool as one agent outside that agent's calls. It ends when an operator revokes it, when
// the agent may no longer use the tool in whose call it was issued, and with the daemon.
type Delegation struct {
	ID        string // for operators; the plugin holds another, secret word
	Tool      tool.Name
	Agent     string
	Session   string
	IssuedBy  tool.Name // the plugin's tool in whose call it was issued
	Issued    time.Time
	Calls     int       // that were made with it
	LastCall  time.Time // zero: none yet
	LastError string    // of the last call; "" if it worked
}

// delegations are those of one plugin, across restarts of its process.
type delegations struct {
	mu      sync.Mutex
	byToken map[string]*delegation
}

type delegation struct {
	Delegation
	depth    int
	delegate *provider.Delegate
}

func (d *delegation) ended() error {
	if d.delegate.Check == nil {
		return nil
	}
	return d.delegate.Check()
}

// issue makes a delegation and returns its secret word. One for the same is issued once only: fresh says that it is new.
func (d *delegations) issue(call *provider.Request, name tool.Name) (token string, fresh bool, err error) {
	made, err := call.Host.Delegate(call.Definition.Name)
	if err != nil {
		return "", false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	c := call.Call
	for token, have := range d.byToken {
		if have.Tool == name && have.Agent == c.Agent && have.Session == c.Session && have.IssuedBy == call.Definition.Name && have.depth == c.Depth {
			return token, false, nil
		}
	}
	if len(d.byToken) >= maxDelegations {
		return "", false, tool.Errorf(tool.RateLimited, "the plugin holds %d delegations, which is as many as it can; an operator has to revoke some", maxDelegations)
	}
	if d.byToken == nil {
		d.byToken = map[string]*delegation{}
	}
	token = rand.Text()
	d.byToken[token] = &delegation{
		Delegation: Delegation{ID: rand.Text()[:8], Tool: name, Agent: c.Agent, Session: c.Session, IssuedBy: call.Definition.Name, Issued: time.Now()},
		depth:      c.Depth, delegate: made,
	}
	return token, true, nil
}

// sweep forgets what has ended. The mutex is held.
func (d *delegations) sweep() {
	maps.DeleteFunc(d.byToken, func(_ string, x *delegation) bool { return x.ended() != nil })
}

func (d *delegations) withdraw(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byToken, token)
}

// call makes a call with a delegation.
func (d *delegations) call(ctx context.Context, token string, name tool.Name, args json.RawMessage) (*tool.Result, error) {
	d.mu.Lock()
	x := d.byToken[token]
	d.mu.Unlock()
	if x == nil {
		return nil, tool.Errorf(tool.NotGranted, "there is no such delegation: it was revoked, or issued before hermesd was started; do not retry, ask for another in the agent's next call")
	}
	if err := x.ended(); err != nil {
		d.withdraw(token)
		return nil, err
	}
	if name != x.Tool {
		return nil, tool.Errorf(tool.NotGranted, "the delegation is for %s, not for %s; do not retry", x.Tool, name)
	}
	result, err := x.delegate.CallTool(ctx, name, args)
	d.mu.Lock()
	defer d.mu.Unlock()
	x.Calls, x.LastCall, x.LastError = x.Calls+1, time.Now(), ""
	if err != nil {
		x.LastError = oneLine(cut(err.Error()))
	}
	return result, err
}

// list returns what holds now, oldest first.
func (d *delegations) list() []Delegation {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	var all []Delegation
	for _, x := range d.byToken {
		all = append(all, x.Delegation)
	}
	slices.SortFunc(all, func(a, b Delegation) int { return cmp.Or(a.Issued.Compare(b.Issued), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Revoke takes delegations back by their ids, or all if none is given, and returns how many those were.
func (p *Provider) Revoke(ids ...string) int {
	d := &p.delegations
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.byToken)
	maps.DeleteFunc(d.byToken, func(_ string, x *delegation) bool { return len(ids) == 0 || slices.Contains(ids, x.ID) })
	return before - len(d.byToken)
}

// callTool answers a request for a call of a tool. call is nil outside a call.
func (r *requests) callTool(ctx context.Context, req *pb.HostRequest, call *provider.Request) *pb.AnswerRequest {
	ask := req.GetCallTool()
	args := json.RawMessage(ask.GetArguments())
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var result *tool.Result
	var issued string
	var fresh bool
	var err error
	held := &r.provider.delegations
	switch {
	case !json.Valid(args):
		err = tool.Errorf(tool.BadRequest, "the arguments are not JSON")
	case req.GetDelegation() != "":
		result, err = held.call(ctx, req.GetDelegation(), ask.GetName(), args)
	case call == nil:
		err = tool.Errorf(tool.NotGranted, "a tool can be called outside a call only with a delegation, which an earlier call of the agent can ask for")
	case ask.GetDelegate():
		if issued, fresh, err = held.issue(call, ask.GetName()); err != nil {
			break
		}
		if result, err = call.Host.CallTool(ctx, ask.GetName(), args); err != nil && fresh {
			held.withdraw(issued)
		}
	default:
		result, err = call.Host.CallTool(ctx, ask.GetName(), args)
	}
	if err != nil {
		return refusal(err)
	}
	answer := &pb.Result{Structured: result.Structured, IsError: result.IsError, Meta: result.Meta}
	for _, c := range result.Content {
		answer.Content = append(answer.Content, c)
	}
	return &pb.AnswerRequest{Answer: &pb.AnswerRequest_CallTool{CallTool: answer}, Delegation: issued}
}
