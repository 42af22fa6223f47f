package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Form makes requests into a question with a flat form, as MCP's form elicitation has it (2025-11-25): a choice for each
// request, and one reason.
func Form(requests []Pending) (message string, schema json.RawMessage, err error) {
	type field struct {
		Type        string   `json:"type"`
		Title       string   `json:"title"`
		Description string   `json:"description,omitempty"`
		Enum        []Choice `json:"enum,omitempty"`
		MaxLength   int      `json:"maxLength,omitempty"`
	}
	properties := map[string]field{
		"reason": {Type: "string", Title: "Reason", Description: "for a refusal, read by the agent", MaxLength: maxReason},
	}
	var required []string
	var text strings.Builder
	text.WriteString("May this run?")
	if len(requests) > 1 {
		fmt.Fprintf(&text, " %d calls wait.", len(requests))
	}
	for i := range requests {
		p := &requests[i]
		name := fieldName(i, len(requests))
		f := field{Type: "string", Title: "Answer", Enum: p.Choices}
		text.WriteString("\n\n")
		if len(requests) > 1 {
			f.Title = fmt.Sprintf("Answer %d: %s", i+1, p.Tool)
			fmt.Fprintf(&text, "%d. ", i+1)
		}
		text.WriteString(describe(p))
		properties[name] = f
		required = append(required, name)
	}
	schema, err = json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	return text.String(), schema, err
}

func fieldName(i, n int) string {
	if n == 1 {
		return "choice"
	}
	return fmt.Sprintf("choice_%d", i+1)
}

// ParseForm reads what a human did with a form that [Form] made of the same requests. Declining denies all of them;
// closing the form is [ErrDismissed].
func ParseForm(requests []Pending, action string, content json.RawMessage) (Reply, error) {
	reply := Reply{}
	switch action {
	case "decline":
		for i := range requests {
			reply[requests[i].ID] = Decision{Choice: Deny}
		}
		return reply, nil
	case "cancel":
		return nil, ErrDismissed
	case "accept":
	default:
		return nil, fmt.Errorf("the form came back with the action %.40q", action)
	}
	var values map[string]any
	if err := json.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("the form's values are no JSON object: %w", err)
	}
	reason, _ := values["reason"].(string)
	for i := range requests {
		if choice, ok := values[fieldName(i, len(requests))].(string); ok {
			reply[requests[i].ID] = Decision{Choice: Choice(choice), Reason: reason}
		}
	}
	if len(reply) == 0 {
		return nil, fmt.Errorf("the form came back without a choice")
	}
	return reply, nil
}

// Elicit puts a form to the human behind an agent's client and returns what he did with it: accept, decline or cancel.
type Elicit func(ctx context.Context, message string, schema json.RawMessage) (action string, content json.RawMessage, err error)

type formChannel struct{ elicit Elicit }

// NewForm makes the channel that asks through an agent's own client.
func NewForm(e Elicit) Channel { return formChannel{e} }

func (formChannel) Name() string    { return "client" }
func (formChannel) Listening() bool { return true }

func (c formChannel) Ask(ctx context.Context, p *Prompt) (Reply, error) {
	message, schema, err := Form(p.Requests)
	if err != nil {
		return nil, err
	}
	action, content, err := c.elicit(ctx, message, schema)
	if err != nil {
		return nil, err
	}
	return ParseForm(p.Requests, action, content)
}
