// Package conformance checks whether a plugin keeps the contract hermes.plugin.v1. plugintest.Conformance runs it in an
// author's tests, `hermesd plugin check` on any program, whatever language it is written in.
//
// The checks know a plugin only by what it says over the wire. They call a tool for real only if it declares itself
// read-only and gives examples, or if the caller names a call that may be made.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/pluginhost"
)

// Call is a call of one of the plugin's tools.
type Call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Options say how a plugin is checked. nil means the defaults.
type Options struct {
	// Config is the configuration of the instances that are called, a JSON object; nil is the empty one.
	Config json.RawMessage
	// Calls may be made for real, besides the examples of read-only tools.
	Calls []Call
	// Slow are calls that run until they are cancelled; without any, the cancel check has only quick calls to go by.
	Slow []Call
	// Panics are calls that make the tool's code panic or throw.
	Panics []Call
	// Hosted starts the plugin under hermesd's own host, too, as these options say; nil leaves that out. Name, Config,
	// StateDir and OnChange are filled in.
	Hosted *pluginhost.Options
	// Only names the checks to run; nil is all. Those that the others stand on, up to "examples", always run.
	Only []string
	// CancelWithin is how soon a cancelled call must end; 0 is 2 s.
	CancelWithin time.Duration
	// CheckTimeout bounds one check; 0 is 30 s.
	CheckTimeout time.Duration
}

// Status is how a check ended.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	Skip Status = "skip" // there was nothing to try it on; the finding says what would help
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string   `json:"check"`
	About  string   `json:"about"` // what is checked, as a sentence
	Status Status   `json:"status"`
	Faults []string `json:"faults,omitempty"` // what is wrong, each with what to do
	Note   string   `json:"note,omitempty"`   // why it was skipped, or how far it went
}

// Report is the outcome of all checks.
type Report struct {
	Plugin   string    `json:"plugin"` // as it names itself; "" if it did not start
	Version  string    `json:"version"`
	Tools    int       `json:"tools"`
	Findings []Finding `json:"findings"`
	Aborted  bool      `json:"aborted,omitempty"` // the rest was not tried: what failed comes first
}

// OK reports whether no check failed.
func (r *Report) OK() bool {
	for _, f := range r.Findings {
		if f.Status == Fail {
			return false
		}
	}
	return true
}

// check is one row of the table.
type check struct {
	name, about string
	run         func(context.Context, *runner)
}

// checks are in the order in which they run.
var checks = []check{
	{"describe", "the description is complete and stable, before any configuration", checkDescribe},
	{"configure", "the configuration is accepted", checkConfigure},
	{"list", "the tools are listed with unique names, and in the same way every time", checkList},
	{"schemas", "every schema compiles and is of type object", checkSchemas},
	{"examples", "every example fits its tool's schema", checkExamples},
	{"rpcs", "every RPC of the contract is there", checkRPCs},
	{"config-errors", "a wrong configuration is refused with the path of the field", checkConfigErrors},
	{"bad-arguments", "arguments that do not fit are refused, and the tool is not run", checkBadArguments},
	{"unknown-tool", "a tool that is not listed is refused", checkUnknownTool},
	{"results", "results are content blocks, and fit the output schema", checkResults},
	{"big-results", "big results come in pieces, and never more than was asked for", checkBigResults},
	{"concurrent", "calls run at the same time, and health is answered meanwhile", checkConcurrent},
	{"cancel", "a cancelled call ends in time", checkCancel},
	{"panic", "a panic costs one call, not the process", checkPanic},
	{"drain", "a draining plugin refuses new calls", checkDrain},
	{"stdout", "nothing but the handshake line is printed on stdout", checkStdout},
	{"leaks", "nothing is left of calls, and of the plugin after its end", checkLeaks},
	{"lifeline", "the plugin ends when its host has died", checkLifeline},
	{"hosted", "hermesd's own host accepts it", checkHosted},
}

// foundation are the checks whose finds the others go by; after a failure of a necessary one no other makes sense.
var (
	foundation = []string{"describe", "configure", "list", "schemas", "examples"}
	necessary  = foundation[:3]
)

// Check runs all checks. An error means that ctx ended; whatever is wrong with the plugin is in the report.
func Check(ctx context.Context, target wire.Target, opts *Options) (*Report, error) {
	r := newRunner(target, opts)
	defer r.close()
	for i := range checks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if name := checks[i].name; r.opts.Only != nil && !slices.Contains(foundation, name) && !slices.Contains(r.opts.Only, name) {
			continue
		}
		f := r.run(ctx, &checks[i])
		r.report.Findings = append(r.report.Findings, f)
		if f.Status == Fail && slices.Contains(necessary, f.Check) {
			r.report.Aborted = true
			break
		}
	}
	return &r.report, ctx.Err()
}

// Names are the checks with what each is about, in their order.
func Names() [][2]string {
	var list [][2]string
	for _, c := range checks {
		list = append(list, [2]string{c.name, c.about})
	}
	return list
}

func (r *runner) run(ctx context.Context, c *check) Finding {
	ctx, cancel := context.WithTimeout(ctx, r.opts.CheckTimeout)
	defer cancel()
	r.now = Finding{Check: c.name, About: c.about}
	c.run(ctx, r)
	switch {
	case len(r.now.Faults) > 0:
		r.now.Status = Fail
	case r.now.Status == "":
		r.now.Status = Pass
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && r.now.Status != Fail {
		r.now.Status = Fail
		r.now.Faults = append(r.now.Faults, fmt.Sprintf("it was not done within %v", r.opts.CheckTimeout))
	}
	return r.now
}
