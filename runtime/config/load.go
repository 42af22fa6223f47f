package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
)

// maxFiles bounds the files of conf.d.
const maxFiles = 200

// Load reads the configuration at path and the files of conf.d beside it, in the order of their names. A nil env is the
// process's own. The Config is complete unless the diagnostics have errors; it must not be used then.
func Load(path string, env *Environment) (*Config, Diagnostics) {
	env = env.orProcess()
	l := newLoader(path, env)
	l.read(path, env)
	dir := filepath.Join(filepath.Dir(path), "conf.d")
	names, err := env.ReadDir(dir)
	if err != nil {
		l.trouble("Cannot list "+dir, err)
	}
	names = slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool {
		return strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".hcl.json")
	})
	if len(names) > maxFiles {
		l.trouble("Too many files in "+dir, fmt.Errorf("it has %d and the limit is %d; merge some", len(names), maxFiles))
		names = nil
	}
	for _, name := range names {
		l.read(filepath.Join(dir, name), env)
	}
	return l.finish(env)
}

// Parse reads a configuration from memory, as if it were the one file at path.
func Parse(path string, src []byte, env *Environment) (*Config, Diagnostics) {
	env = env.orProcess()
	l := newLoader(path, env)
	l.parse(path, src)
	return l.finish(env)
}

// Default is the configuration of an empty file.
func Default(env *Environment) (*Config, Diagnostics) { return Parse("config.hcl", nil, env) }

type loader struct {
	*decoder
	bodies []hcl.Body
	order  []string
}

func newLoader(path string, env *Environment) *loader {
	dir := filepath.Dir(path)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	d := &decoder{files: map[string]*hcl.File{}, dir: dir, cfg: &Config{configPlaces: map[string]places{}}, secrets: &secretSet{}, scopes: map[string]*scope{}, labels: map[string][]hcl.Range{}}
	d.ctx = &hcl.EvalContext{Functions: d.functions(env)}
	return &loader{decoder: d}
}

func (l *loader) trouble(summary string, err error) {
	l.fault(hcl.Range{}, summary, cause(err).Error()+".")
}

func (l *loader) read(path string, env *Environment) {
	src, err := env.ReadFile(path)
	if err != nil {
		l.trouble("Cannot read the configuration", err)
		return
	}
	l.parse(path, src)
}

func (l *loader) parse(path string, src []byte) {
	if len(src) > MaxFileBytes {
		l.trouble("Configuration file is too large", fmt.Errorf("%s has %d bytes and the limit is %s; split it into files in conf.d", path, len(src), Size(MaxFileBytes)))
		return
	}
	parse, deep := parseNative, tooDeep
	if strings.HasSuffix(path, ".json") {
		parse, deep = json.Parse, tooDeepJSON
	}
	if detail := deep(src, path); detail != "" {
		l.trouble("Configuration is too complex", fmt.Errorf("%s: %s", path, strings.TrimSuffix(detail, ".")))
		return
	}
	file, diags := parse(src, path)
	l.diags = append(l.diags, diags...)
	l.order = append(l.order, path)
	if file != nil {
		l.files[path] = file
		if !diags.HasErrors() {
			l.bodies = append(l.bodies, file.Body)
		}
	}
}

func parseNative(src []byte, path string) (*hcl.File, hcl.Diagnostics) {
	return hclsyntax.ParseConfig(src, path, hcl.InitialPos)
}

func (l *loader) finish(env *Environment) (*Config, Diagnostics) {
	cfg := l.cfg
	if !l.diags.HasErrors() {
		top := &scope{decoder: l.decoder}
		l.scopes[""] = top
		l.body(reflect.ValueOf(cfg).Elem(), hcl.MergeBodies(l.bodies), top, false)
		l.complete(env)
		found := len(l.diags)
		l.crossCheck(env)
		if len(cfg.Unread) > 0 { // as in a block
			l.diags = l.diags[:found]
		}
		l.hide(env)
	}
	cfg.Files, cfg.Secrets, cfg.masker, cfg.files = l.order, l.secrets.list, &l.secrets.masker, l.files
	return cfg, newDiagnostics(l.diags, l.files, l.order, l.secrets.mask)
}
