package pipeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Step is what one stage did to a call.
type Step struct {
	Stage string        `json:"stage"`
	Took  time.Duration `json:"took_ns"`
	// Refused is the code with which the stage refused the call; "" if it let it pass.
	Refused tool.Code `json:"refused,omitempty"`
	// Note says what the stage decided or changed; "" if nothing.
	Note string `json:"note,omitempty"`
}

// explain notes what a stage did. It is called when the stage has run, also after a panic.
func (e *Entry) explain(stage string, began time.Time, err **tool.Error) {
	step := Step{Stage: stage, Took: time.Since(began)}
	if *err != nil {
		step.Refused, step.Note = (*err).Code, (*err).Message
	} else {
		step.Note = e.note(stage)
	}
	e.out.Steps = append(e.out.Steps, step)
}

func (e *Entry) note(stage string) string {
	switch stage {
	case "scope":
		return "the tool is " + e.Call.Tool
	case "validate":
		var changed []string
		for _, c := range e.Coerced {
			changed = append(changed, fmt.Sprintf("%s: %s became %s", c.Path, c.From, c.To))
		}
		return strings.Join(changed, "; ")
	case "pre hooks":
		return strings.TrimSpace(string(e.Verdict.Action) + " " + e.Verdict.Message)
	case "rules":
		return strings.TrimSpace(string(e.Decision.Action) + " " + e.Decision.Rule)
	case "approval":
		return "answered by " + e.Answer.By
	}
	return ""
}
