package pluginsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Coldness is how close at hand an agent should have a tool.
type Coldness string

// The degrees of coldness. The host lowers what a third party's plugin declares to External unless the operator trusts
// the plugin as a built-in.
const (
	Core     Coldness = "core"     // always in the agent's list
	Cold     Coldness = "cold"     // only an event calls for it
	External Coldness = "external" // reached through search; the default
)

// ToolOptions say more about a tool. The zero value is legal: nil means the same.
type ToolOptions struct {
	Toolset string // the group that is granted to agents; empty: none
	Title   string // for people

	// ReadOnly, Idempotent and ParallelSafe are claims; leaving them out means no.
	ReadOnly     bool // changes nothing
	Idempotent   bool // a second call with the same arguments changes nothing more, so that the host may retry it
	ParallelSafe bool // two calls of the tool may run at once
	// Destructive (may destroy something) and OpenWorld (reaches beyond this machine) mean yes when left out; say
	// new(false) to deny them.
	Destructive *bool
	OpenWorld   *bool

	Coldness Coldness
	Keywords []string // words that people search with and that name and description lack
	Examples []any    // arguments as values that marshal to JSON; checked against the schema at start

	// RequiresEnv names the environment variables that the tool cannot do without. The operator must name them in the
	// block's pass_env or env; until then the tool is not offered. [Secrets] gives their values.
	RequiresEnv []string
	// Available says whether the tool's other preconditions hold: nil means always, an error is what agents and operators
	// read. The host asks often and caches the answer for half a minute, so it must be quick.
	Available func(context.Context) error

	Timeout        time.Duration // of one call; 0: the host's default
	MaxResultBytes int           // of one result; 0: the host's default

	// InputSchema and OutputSchema take the place of what the types say.
	InputSchema, OutputSchema json.RawMessage
	Meta                      map[string]any // passed to agents unchanged (MCP's _meta)
}

// Tool is a definition with the code behind it. Make one with [NewTool] or [NewRawTool].
type Tool struct {
	name, description string
	options           ToolOptions
	input             *schema
	output            json.RawMessage
	invoke            func(context.Context, json.RawMessage) (*Result, error)
	err               error // why the tool cannot be served
}

// Name returns the tool's name.
func (t Tool) Name() string { return t.name }

// Err returns why the tool cannot be served: a bad name, a schema that does not compile, an example that does not fit.
// [Serve] refuses to start with such a tool; a plugin that reads its tools from elsewhere may leave them out.
func (t Tool) Err() error { return t.err }

// NewTool makes a tool of a function. In is a struct whose fields are the arguments; [SchemaFor] says how its tags become
// the schema. Arguments that do not fit are refused before fn is called, and defaults are filled in.
//
// Out is what the agent gets: a string becomes a text block, []Content and *Result are taken as they are, and every other
// value becomes JSON, as structured content too if it is an object.
func NewTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts *ToolOptions) Tool {
	t := newTool(name, description, opts)
	if t.err == nil && fn == nil {
		t.err = errors.New("it has no function")
	}
	if t.err == nil {
		t.err = t.inferSchemas(reflect.TypeFor[In](), reflect.TypeFor[Out]())
	}
	if t.err == nil {
		t.err = t.checkExamples()
	}
	typed := t.options.InputSchema == nil
	t.invoke = func(ctx context.Context, args json.RawMessage) (*Result, error) {
		var in In
		if err := t.input.decode(args, &in, typed); err != nil {
			return nil, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return resultOf(out)
	}
	return t
}

// NewRawTool makes a tool of a JSON Schema (of type object) and a function over the arguments as JSON, which fit the
// schema.
func NewRawTool(name, description string, inputSchema json.RawMessage, fn func(context.Context, json.RawMessage) (*Result, error), opts *ToolOptions) Tool {
	t := newTool(name, description, opts)
	t.output = t.options.OutputSchema
	switch {
	case t.err != nil:
	case fn == nil:
		t.err = errors.New("it has no function")
	default:
		if t.input, t.err = compileSchema(inputSchema, false); t.err != nil {
			t.err = fmt.Errorf("its input schema does not compile: %w", t.err)
			break
		}
		if t.err = t.checkOutput(); t.err == nil {
			t.err = t.checkExamples()
		}
	}
	t.invoke = func(ctx context.Context, args json.RawMessage) (*Result, error) {
		if err := t.input.validate(args); err != nil {
			return nil, err
		}
		return fn(ctx, args)
	}
	return t
}

func newTool(name, description string, opts *ToolOptions) Tool {
	t := Tool{name: name, description: description}
	if opts != nil {
		t.options = *opts
	}
	switch o := t.options; {
	case !validName(name):
		t.err = errors.New("a name has 1 to 64 characters of A-Z, a-z, 0-9, _ and -")
	case o.Coldness != "" && o.Coldness != Core && o.Coldness != Cold && o.Coldness != External:
		t.err = fmt.Errorf(`its coldness is %q; it must be "core", "cold" or "external"`, o.Coldness)
	case o.Timeout < 0 || o.MaxResultBytes < 0:
		t.err = errors.New("its timeout and max result bytes must not be negative")
	}
	return t
}

func validName(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, letters) == ""
}

func (t *Tool) inferSchemas(in, out reflect.Type) error {
	raw := t.options.InputSchema
	if raw == nil {
		s, err := objectSchema(in)
		if err != nil {
			return fmt.Errorf("its input type has no schema: %w", err)
		}
		if raw, err = json.Marshal(s); err != nil {
			return fmt.Errorf("its input type has no schema: %w", err)
		}
	}
	var err error
	if t.input, err = compileSchema(raw, t.options.InputSchema == nil); err != nil {
		return fmt.Errorf("its input schema does not compile: %w", err)
	}
	t.output = t.options.OutputSchema
	if t.output == nil {
		if t.output, err = outputSchema(out); err != nil {
			return fmt.Errorf("its output type has no schema: %w", err)
		}
	}
	return t.checkOutput()
}

func (t *Tool) checkOutput() error {
	if t.output == nil {
		return nil
	}
	if _, err := compileSchema(t.output, false); err != nil {
		return fmt.Errorf("its output schema does not compile: %w", err)
	}
	return nil
}

func (t *Tool) checkExamples() error {
	for i, example := range t.options.Examples {
		raw, err := compact(example)
		if err == nil {
			err = t.input.validate(raw)
		}
		if err != nil {
			return fmt.Errorf("its example %d does not fit its schema: %w", i+1, err)
		}
	}
	return nil
}
