package bridge

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/hermesd/hermesd/runtime/tool"
)

type envelopeAnswer struct {
	Results      []envelopeItem `json:"results"`
	SuccessCount int            `json:"success_count"`
	ErrorCount   int            `json:"error_count"`
	TotalCount   int            `json:"total_count"`
}

type envelopeItem struct {
	Index    int             `json:"index"`
	Name     tool.Name       `json:"name"`
	Response json.RawMessage `json:"response,omitempty"`
	Error    *itemError      `json:"error,omitempty"`
	// ContentBlocks are the places in the result's content of what is no text, such as images.
	ContentBlocks []int    `json:"content_blocks,omitempty"`
	Coerced       any      `json:"coerced,omitempty"`
	Notes         []string `json:"notes,omitempty"`
}

// itemError is an error with its code and message in front and whatever else helps behind.
type itemError struct {
	code    tool.Code
	message string
	more    map[string]any
}

// MarshalJSON implements [json.Marshaler].
func (e *itemError) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	write := func(key string, value any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, err := tool.JSON(key)
		if err != nil {
			return err
		}
		raw, err := tool.JSON(value)
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(raw)
		return nil
	}
	if err := write("code", e.code); err != nil {
		return nil, err
	}
	if err := write("message", e.message); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(e.more)) {
		if err := write(key, e.more[key]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// bare is the tool's own result, or its error, with no envelope. What hermesd has to say beside it follows as a block of
// its own; changed arguments stand in _meta.
func (s *slot) bare() (*tool.Result, error) {
	o := &s.outcome
	if o.Err != nil {
		if len(o.Notes) > 0 {
			return nil, with(o.Err, "notes", o.Notes)
		}
		return nil, o.Err
	}
	if len(o.Notes) == 0 && len(o.Coerced) == 0 {
		return o.Result, nil
	}
	result := *o.Result
	result.Content = slices.Clone(result.Content)
	for _, note := range o.Notes {
		result.Content = append(result.Content, tool.Text(note))
	}
	if len(o.Coerced) > 0 {
		result.Meta = withCoerced(result.Meta, o.Coerced)
	}
	return &result, nil
}

// coercedKey is where _meta tells how arguments were changed to fit the schema.
const coercedKey = "hermesd/coerced"

func withCoerced(meta json.RawMessage, changes any) json.RawMessage {
	keys := map[string]json.RawMessage{}
	if json.Valid(meta) { // it is the provider's
		keys, _ = asObject(meta)
	}
	told, err := tool.JSON(changes)
	if err != nil {
		return meta
	}
	keys[coercedKey] = told
	whole, err := tool.JSON(keys)
	if err != nil {
		return meta
	}
	return whole
}

// envelope is the answer to a batch: one text block with a slot for each entry, then every block of the entries' results
// that is no text, in order.
func envelope(slots []slot) (*tool.Result, error) {
	answer := &envelopeAnswer{TotalCount: len(slots)}
	var blocks []tool.Content
	for i := range slots {
		s := &slots[i]
		item := envelopeItem{Index: i, Name: s.name, Notes: s.outcome.Notes}
		if len(s.outcome.Coerced) > 0 {
			item.Coerced = s.outcome.Coerced
		}
		if r := s.outcome.Result; s.outcome.Err == nil {
			for _, c := range r.Content {
				if _, text := c.AsText(); !text {
					blocks = append(blocks, c)
					item.ContentBlocks = append(item.ContentBlocks, len(blocks)) // behind the envelope's text
				}
			}
		}
		if item.Error = s.failure(); item.Error != nil {
			answer.ErrorCount++
		} else {
			answer.SuccessCount++
			item.Response = response(s.outcome.Result)
		}
		answer.Results = append(answer.Results, item)
	}
	result, err := encode(answer)
	if err != nil {
		return nil, err
	}
	result.Content = append(result.Content, blocks...)
	return result, nil
}

// failure is why an entry has no response; nil if it has one.
func (s *slot) failure() *itemError {
	if err := s.outcome.Err; err != nil {
		e := &itemError{code: err.Code, message: err.Message, more: maps.Clone(err.Extra)}
		if e.more == nil {
			e.more = map[string]any{}
		}
		if err.Retryable {
			e.more["retryable"] = true
		}
		if err.Pointer != "" {
			e.more["pointer"] = err.Pointer
		}
		return e
	}
	if r := s.outcome.Result; r.IsError {
		e := &itemError{code: tool.ToolFailed, message: r.Text()}
		if r.Structured != nil {
			e.more = map[string]any{"response": r.Structured}
		}
		return e
	}
	return nil
}

// response is what a tool answered: its structured content if it gave some, which its text only repeats, else its text.
func response(r *tool.Result) json.RawMessage {
	if len(r.Structured) > 0 && json.Valid(r.Structured) {
		return r.Structured
	}
	text, err := tool.JSON(r.Text())
	if err != nil {
		return json.RawMessage(`""`)
	}
	return text
}
