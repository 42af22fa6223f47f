package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// explainCall runs a call and says what each stage did to it, before the result.
func (c *cli) explainCall(ctx context.Context, client *admin.Client, req *adminpb.ExplainCallRequest) error {
	stream, err := client.ExplainCall(ctx, req)
	if err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil {
		return err
	}
	if c.json {
		err := c.printJSON(map[string]json.RawMessage{"result": answer.GetResult(), "explanation": answer.GetExplanation()})
		if err == nil && answer.GetIsError() {
			err = &exitError{code: exitTool, err: errors.New("the tool answered with an error"), silent: true}
		}
		return err
	}
	var list []admin.Explanation
	if err := json.Unmarshal(answer.GetExplanation(), &list); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	for i := range list {
		if err := c.printStages(&list[i]); err != nil {
			return err
		}
	}
	return c.printResult(&adminpb.Result{Result: answer.GetResult(), IsError: answer.GetIsError()})
}

func (c *cli) printStages(e *admin.Explanation) error {
	sayf(c.err, "call %s of %s with %s\n", e.CallID, e.Tool, e.Arguments)
	if len(e.GrantedBy) > 0 {
		sayf(c.err, "granted by %s\n", strings.Join(e.GrantedBy, ", "))
	}
	for _, change := range e.Coerced {
		sayf(c.err, "coerced %s: %s became %s\n", change.Path, change.From, change.To)
	}
	w := tabwriter.NewWriter(c.err, 0, 0, 2, ' ', 0)
	for _, s := range e.Stages {
		what := s.Note
		if s.Refused != "" {
			what = "refused, " + string(s.Refused) + ": " + s.Note
		}
		sayf(w, "  %s\t%s\t%s\n", s.Stage, s.Took.Round(time.Microsecond), what)
	}
	return w.Flush()
}
