package tool

import (
	"encoding/json"
	"time"
)

// RecordKind says which moment of a call a record is about.
type RecordKind string

// The kinds of record.
const (
	RecordStarted  RecordKind = "started"  // written before a call runs
	RecordFinished RecordKind = "finished" // how it ended; the only record of a call that was refused
	RecordAsked    RecordKind = "asked"    // a human was asked to approve it
	RecordAnswered RecordKind = "answered" // and what the answer was
	RecordRefused  RecordKind = "refused"  // somebody who may not tried to speak to the daemon as an operator
)

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeError     Outcome = "error"   // it could not be run, or it ran and failed
	OutcomeDenied    Outcome = "denied"  // by a rule, by a human, or because no human answered
	OutcomeBlocked   Outcome = "blocked" // by a hook or by the guard
	OutcomeTimeout   Outcome = "timeout"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeLost      Outcome = "outcome_unknown" // it may or may not have run
)

// OutcomeOf sorts an error's code into the outcomes; "" is [OutcomeOK].
func OutcomeOf(code Code) Outcome {
	switch code {
	case "":
		return OutcomeOK
	case DeniedByRule, ApprovalDenied, ApprovalTimeout, NobodyAsked, ApprovalPending, ApprovalVoid:
		return OutcomeDenied
	case BlockedByHook, HookFailed, RateLimited, LoopBlocked:
		return OutcomeBlocked
	case Timeout:
		return OutcomeTimeout
	case Cancelled:
		return OutcomeCancelled
	case OutcomeUnknown:
		return OutcomeLost
	default:
		return OutcomeError
	}
}

// Record is one line of the audit as its writer knows it. The log adds sequence, digests and chain.
type Record struct {
	Kind       RecordKind
	CallID     string
	Agent      string
	Session    string
	Via        Via
	Tool       Name
	Source     Source
	SourceName string
	Arguments  json.RawMessage // digested; stored, masked, only where the operator asked for it
	Coerced    []string        // paths of the arguments that were changed to fit the schema
	Rule       string          // the rule that decided, with its file and line
	Approval   string          // the approval's id
	By         string          // who answered it, and by which channel
	Outcome    Outcome
	Code       Code          // the error's code; "" if there was none
	Duration   time.Duration // of the whole call; 0 in a record of its start
	Result     *Result       // digested, never stored
}
