package pluginsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// outputSchema is nil for types that say nothing about their form. MCP wants structured results to be objects.
func outputSchema(t reflect.Type) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Result]() || t.Kind() != reflect.Struct {
		return nil, nil
	}
	s, err := reflectSchema(t, nil)
	if err != nil {
		return nil, err
	}
	if s.Type != "object" || len(s.Properties) == 0 {
		return nil, nil
	}
	return json.Marshal(s)
}

// resultOf makes a result of a handler's output.
func resultOf(out any) (*Result, error) {
	switch v := out.(type) {
	case *Result:
		if v == nil {
			return &Result{}, nil
		}
		return v, nil
	case Result:
		return &v, nil
	case []Content:
		return &Result{Content: v}, nil
	case string:
		return TextResult("%s", v), nil
	}
	raw, err := compact(out)
	if err != nil {
		return nil, fmt.Errorf("the result cannot be encoded: %w", err)
	}
	r := TextResult("%s", raw)
	if bytes.HasPrefix(raw, []byte("{")) {
		r.Structured = json.RawMessage(raw)
	}
	return r, nil
}

func (t Tool) definition() (*pb.ToolDefinition, error) {
	o := t.options
	d := &pb.ToolDefinition{
		Name: t.name, Toolset: o.Toolset, Title: valid(o.Title), Description: valid(t.description),
		InputSchema: t.input.raw, OutputSchema: t.output, Coldness: string(o.Coldness),
		Annotations: &pb.Annotations{Destructive: o.Destructive, OpenWorld: o.OpenWorld,
			ReadOnly: claim(o.ReadOnly), Idempotent: claim(o.Idempotent), ParallelSafe: claim(o.ParallelSafe)},
		RequiresEnv: o.RequiresEnv, TimeoutMs: uint64(o.Timeout.Milliseconds()), MaxResultBytes: uint64(o.MaxResultBytes),
	}
	for _, k := range o.Keywords {
		d.Keywords = append(d.Keywords, valid(k))
	}
	for _, example := range o.Examples {
		raw, err := compact(example)
		if err != nil {
			return nil, fmt.Errorf("an example cannot be encoded: %w", err)
		}
		d.Examples = append(d.Examples, raw)
	}
	if o.Meta != nil {
		var err error
		if d.Meta, err = compact(o.Meta); err != nil {
			return nil, fmt.Errorf("its meta cannot be encoded: %w", err)
		}
	}
	return d, nil
}

// claim is nil for false: an author who says nothing and one who says no mean the same.
func claim(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

// valid makes s fit for a protobuf string.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// serve turns the tool into what the wire side runs.
func (t Tool) serve(p *Plugin) (*serve.Tool, error) {
	if t.err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.name, t.err)
	}
	if t.invoke == nil {
		return nil, errors.New("a tool was not made with NewTool or NewRawTool")
	}
	d, err := t.definition()
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.name, err)
	}
	return &serve.Tool{
		Definition: d,
		Available:  t.available,
		Invoke: func(ctx context.Context, c *serve.Call) (*pb.Result, *pb.Error) {
			hide := newRedactor(t.options.RequiresEnv)
			ctx = context.WithValue(ctx, frameKey{}, &frame{plugin: p, tool: &t, hide: hide})
			r, err := t.invoke(ctx, c.Arguments())
			if err == nil {
				if r == nil {
					r = &Result{}
				}
				var out *pb.Result
				if out, err = r.proto(); err == nil {
					return out, nil
				}
			}
			return nil, hide.error(asError(err)).proto()
		},
	}, nil
}

func (t Tool) available(ctx context.Context) error {
	for _, name := range t.options.RequiresEnv {
		if _, err := lookupSecret(name); err != nil {
			return err
		}
	}
	if t.options.Available == nil {
		return nil
	}
	return t.options.Available(ctx)
}
