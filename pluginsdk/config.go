package pluginsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// Config takes the operator's config block. Make one with [NewConfig].
type Config struct {
	schema *schema
	apply  func(context.Context, json.RawMessage) error
	err    error
}

// NewConfig makes a Config of a struct whose fields are the block's keys; the schema that [SchemaFor] makes of it goes to
// the host, which checks the block against it and shows the operator file and line. apply is called once, before any
// call, with the defaults filled in, also when the block is empty. It should check what a schema cannot say, and answer a
// [*ConfigError] (or several, joined with [errors.Join]) that names the key.
func NewConfig[T any](apply func(context.Context, T) error) *Config {
	c := &Config{}
	s, err := objectSchema(reflect.TypeFor[T]())
	if err == nil {
		var raw []byte
		if raw, err = json.Marshal(s); err == nil {
			c.schema, err = compileSchema(raw, true)
		}
	}
	if err != nil {
		c.err = fmt.Errorf("the config type has no schema: %w", err)
		return c
	}
	if apply == nil {
		c.err = errors.New("NewConfig needs a function that takes the configuration")
		return c
	}
	c.apply = func(ctx context.Context, raw json.RawMessage) error {
		var v T
		if err := c.schema.decode(raw, &v, true); err != nil {
			return err
		}
		return apply(ctx, v)
	}
	return c
}

// ConfigError says what is wrong with the configuration.
type ConfigError struct {
	Path    string // JSON Pointer into the block, for example "/root"; "" means the whole block
	Summary string // what is wrong
	Detail  string // what to do
	Warning bool   // the plugin works all the same
}

func (e *ConfigError) Error() string {
	if e.Path == "" {
		return e.Summary
	}
	return e.Path + ": " + e.Summary
}

// diagnostics turns the error of a Config into what the host shows.
func diagnostics(err error) []*pb.Diagnostic {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*pb.Diagnostic
		for _, e := range joined.Unwrap() {
			all = append(all, diagnostics(e)...)
		}
		return all
	}
	d := &pb.Diagnostic{Summary: err.Error()}
	var (
		config *ConfigError
		fault  *Error
	)
	switch {
	case errors.As(err, &config):
		d.Summary, d.Detail, d.Path = config.Summary, config.Detail, config.Path
		if config.Warning {
			d.Severity = pb.Diagnostic_SEVERITY_WARNING
		}
	case errors.As(err, &fault):
		d.Path, d.Detail = fault.Pointer, fault.Detail
	}
	return []*pb.Diagnostic{d}
}

// configure is what the wire side calls.
func (p *Plugin) configure(ctx context.Context, req *pb.ConfigureRequest) []*pb.Diagnostic {
	raw := json.RawMessage(req.GetConfig())
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if p.Config != nil {
		return diagnostics(p.Config.apply(ctx, raw))
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return diagnostics(fmt.Errorf("the configuration is no JSON object: %w", err))
	}
	if len(keys) > 0 {
		return diagnostics(&ConfigError{Summary: "the plugin takes no configuration", Detail: "remove the config block"})
	}
	return nil
}
