// Package approval asks humans whether a call may run, and keeps their answers.
//
// The [Broker] puts a [Request] to all channels that listen, and the first answer wins. An answer is bound to exactly what
// was asked: agent, session, tool, source, arguments, policy and time; [Broker.Redeem] uses it up directly before the call
// runs and refuses when any of that has changed. Nothing here ever takes silence, an error or a restart for a yes.
package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Choice is what a human may answer.
type Choice string

// The choices.
const (
	Once    Choice = "once"    // this call; nothing is stored
	Session Choice = "session" // and what this rule asks about this tool in this session
	Always  Choice = "always"  // and calls of this tool whose arguments fit the pattern that was shown
	Deny    Choice = "deny"
)

// Mode says what becomes of calls that need a human.
type Mode string

// The modes. "" is Manual.
const (
	Manual  Mode = "manual" // humans are asked
	Off     Mode = "off"    // they run, except for floor rules
	DenyAll Mode = "deny"   // they do not
)

// Request is one call that needs a human.
type Request struct {
	CallID     string
	Agent      string
	Session    string
	Attended   bool // somebody is there to be asked
	Definition *tool.Definition
	// Arguments are the final ones, which would be run as they are.
	Arguments json.RawMessage
	Rule      string // who asks, for people: a rule with file and line, or a hook
	Reason    string
	// Key is what a grant is bound to, such as the rule's name; "" offers no grants.
	Key string
	// Choices are the grants that the human may choose besides [Deny]; nil is all.
	Choices []Choice
	// Floor is set for a rule that no grant and no mode overrides.
	Floor bool
	// Policy is the version of the policy that decided to ask.
	Policy string
}

// Binding is what one approval is for. Each of it must be the same when the call runs.
type Binding struct {
	Agent, Session string
	Tool           tool.Name
	Source         string            // the kind and the name of the tool's provider
	Digest         [sha256.Size]byte // of the arguments' bytes
	Policy         string
}

func (r *Request) binding() Binding {
	return Binding{
		Agent: r.Agent, Session: r.Session, Tool: r.Definition.Name, Source: string(r.Definition.Source) + ":" + r.Definition.SourceName,
		Digest: sha256.Sum256(r.Arguments), Policy: r.Policy,
	}
}

// sum identifies a binding: two are the same if and only if their sums are.
func (b *Binding) sum() sum {
	h := sha256.New()
	for _, s := range []string{b.Agent, b.Session, string(b.Tool), b.Source, string(b.Digest[:]), b.Policy} {
		h.Write(binary.AppendUvarint(nil, uint64(len(s)))) // so that no two lists of fields look alike
		h.Write([]byte(s))
	}
	return sum(h.Sum(nil))
}

type sum [sha256.Size]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// Pending is a request that waits for an answer, as humans see it.
type Pending struct {
	ID         string           `json:"id"`
	CallID     string           `json:"call_id"`
	Agent      string           `json:"agent"`
	Session    string           `json:"session"`
	Tool       tool.Name        `json:"tool"`
	Title      string           `json:"title,omitempty"`
	Source     tool.Source      `json:"source"`
	SourceName string           `json:"source_name"`
	Arguments  json.RawMessage  `json:"arguments"` // secrets that the daemon knows are masked
	Hints      tool.Annotations `json:"annotations"`
	Rule       string           `json:"rule"`
	Reason     string           `json:"reason,omitempty"`
	Choices    []Choice         `json:"choices"`
	// Pattern is what [Always] would cover; nil if that is not offered.
	Pattern Pattern   `json:"pattern,omitempty"`
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
	// Binding is the hex digest of what the approval would be bound to.
	Binding string `json:"binding"`
	// Call is what was asked about, with nothing masked; nil if Lost. When identical calls share a request, it is the first.
	Call *Request `json:"-"`
	// Lost is set for a request that a daemon before this one left behind: nobody can answer it any more.
	Lost bool `json:"lost,omitempty"`
}

// Decision is one human's answer to one request.
type Decision struct {
	Choice Choice `json:"choice"`
	// Reason is read by the agent whose call was denied.
	Reason string `json:"reason,omitempty"`
	// Pattern, with [Always], is a wider pattern than the one that was shown; nil takes that one.
	Pattern Pattern `json:"pattern,omitempty"`
	// By is who answered, by which channel.
	By string `json:"by,omitempty"`
}

// Answer is what became of one request: either Err refuses the call, or ID can be redeemed for it.
type Answer struct {
	ID  string // the approval's, for the record; set with Err, too, if a human was asked
	By  string // who answered, by which channel
	Err *tool.Error
	// Suspend asks the client to bring the whole batch back with an answer; its form is [Suspension]. No call of the batch
	// may run before that.
	Suspend json.RawMessage
}

// Closed is the end of a request, for records and hooks.
type Closed struct {
	Request  Pending   `json:"request"`
	Decision Decision  `json:"decision"`       // Choice "" if nobody answered
	Code     tool.Code `json:"code,omitempty"` // "" if it was approved
}
