package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/hermesd/hermesd/internal/redact"
)

// secretMark is the cty mark of values that come from secret(…); it goes with whatever is computed from them.
type secretMark struct{}

// secretSet collects the secrets of one load.
type secretSet struct {
	list   []Secret
	masker redact.Masker // of list
}

func (s *secretSet) add(ref, value string) {
	if slices.Contains(s.list, Secret{Ref: ref, Value: value}) {
		return
	}
	s.list = append(s.list, Secret{Ref: ref, Value: value})
	s.masker.Set("", s.values()...)
}

// addDerived remembers a text computed from secrets, unless masking one that is known covers it.
func (s *secretSet) addDerived(text string) {
	if text != "" && s.mask(text) == text {
		s.add("", text)
	}
}

// addWhole remembers a text that is a secret itself, also where one that is known is part of it, unless it is too short to
// be masked within texts.
func (s *secretSet) addWhole(text string) {
	if len(text) >= redact.MinLength && s.mask(text) != redact.Mark {
		s.add("", text)
	}
}

func (s *secretSet) mask(text string) string { return s.masker.Mask(text) }

// functions are what expressions may call.
func (d *decoder) functions(env *Environment) map[string]function.Function {
	return map[string]function.Function{
		"secret": d.secretFunc(env), "env": d.envFunc(env), "file": d.fileFunc(env), "path": d.pathFunc(),
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,

		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc,
		"chomp":    stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc, "join": stdlib.JoinFunc,
		"lower": stdlib.LowerFunc, "upper": stdlib.UpperFunc, "title": stdlib.TitleFunc, "replace": stdlib.ReplaceFunc,
		"regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "regexreplace": stdlib.RegexReplaceFunc,
		"split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc, "substr": stdlib.SubstrFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
		"coalesce": stdlib.CoalesceFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc,
		"length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc,
		"reverse": stdlib.ReverseListFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc,
		"zipmap": stdlib.ZipmapFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
	}
}

func textParam(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.String}
}

// secretFunc resolves "env:NAME", "file:PATH" and "credential:NAME" (a file in $CREDENTIALS_DIRECTORY, as systemd's
// LoadCredential= makes them).
func (d *decoder) secretFunc(env *Environment) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{textParam("source")},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			ref := args[0].AsString()
			value, err := d.resolve(ref, env)
			if err == nil && value == "" {
				err = errors.New("it is empty")
			}
			if err != nil {
				fault := function.NewArgErrorf(0, "secret %q cannot be read: %w", ref, err)
				if errors.Is(err, errSource) {
					return cty.NilVal, fault
				}
				return d.lacks(env, fmt.Sprintf("secret(%q)", ref), err, fault)
			}
			d.secrets.add(ref, value)
			return cty.StringVal(value).Mark(secretMark{}), nil
		},
	})
}

func (d *decoder) resolve(ref string, env *Environment) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		value, ok := env.Lookup(name)
		if !ok {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return value, nil
	case "file":
		path := d.absolute(name)
		d.cfg.SecretFiles = append(d.cfg.SecretFiles, path)
		return readText(env, path)
	case "credential":
		dir, ok := env.Lookup("CREDENTIALS_DIRECTORY")
		if !ok {
			return "", errors.New("$CREDENTIALS_DIRECTORY is not set; systemd sets it for services with LoadCredential=")
		}
		if name == "" || name != filepath.Base(name) || name == ".." {
			return "", errors.New("a credential's name is one file name")
		}
		return readText(env, filepath.Join(dir, name))
	}
	return "", errSource
}

// errSource is of a text that names no source at all, in whatever environment.
var errSource = errors.New(`write "env:NAME", "file:PATH" or "credential:NAME"`)

// readText reads a file that holds one secret; the newline that editors put at its end is not part of it.
func readText(env *Environment, path string) (string, error) {
	content, err := env.ReadFile(path)
	if err != nil {
		return "", cause(err)
	}
	if !utf8.Valid(content) {
		return "", fmt.Errorf("%s is no UTF-8 text", path)
	}
	return string(bytes.TrimRight(content, "\r\n")), nil
}

// cause keeps an error's path and reason, without the system call in front.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", at.Path, at.Err)
	}
	return err
}

func (d *decoder) envFunc(env *Environment) function.Function {
	fallback := textParam("default")
	return function.New(&function.Spec{
		Params:   []function.Parameter{textParam("name")},
		VarParam: &fallback,
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			if value, ok := env.Lookup(name); ok {
				return cty.StringVal(value), nil
			}
			if len(args) == 2 {
				return args[1], nil
			}
			reason := fmt.Errorf("the environment variable %s is not set", name)
			return d.lacks(env, fmt.Sprintf("env(%q)", name), reason, function.NewArgErrorf(0, "%w; env(%q, \"default\") gives a value for that case", reason, name))
		},
	})
}

func (d *decoder) fileFunc(env *Environment) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{textParam("path")},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := d.absolute(args[0].AsString())
			content, err := env.ReadFile(path)
			if err != nil {
				err = cause(err)
				return d.lacks(env, fmt.Sprintf("file(%q)", args[0].AsString()), err, function.NewArgErrorf(0, "cannot be read: %w", err))
			}
			if !utf8.Valid(content) {
				return cty.NilVal, function.NewArgErrorf(0, "%s is no UTF-8 text", path)
			}
			return cty.StringVal(string(content)), nil
		},
	})
}

// pathFunc makes paths absolute in places whose meaning the daemon does not know, such as a plugin's config block.
func (d *decoder) pathFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{textParam("path")},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(d.absolute(args[0].AsString())), nil
		},
	})
}
