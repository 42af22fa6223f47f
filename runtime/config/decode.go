package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hermesd/hermesd/internal/redact"
)

// decoder fills structs from HCL bodies as their tags say, and collects what is wrong.
type decoder struct {
	files   map[string]*hcl.File
	ctx     *hcl.EvalContext
	dir     string // where relative paths start
	cfg     *Config
	secrets *secretSet
	owner   string                 // the label of the block that is being decoded
	scopes  map[string]*scope      // the top-level blocks without label, by name
	labels  map[string][]hcl.Range // where the labels of labelled blocks are, by kind, in the order of the Config's slices
	refs    []toolsetRef
	within  []string  // the blocks that are being decoded, the outermost first, as messages call them
	missing []missing // what the present expression asked for in vain
	diags   hcl.Diagnostics
}

// scope is one block while it is decoded and checked.
type scope struct {
	*decoder
	what   string // how messages call it: `plugin "files"`
	at     hcl.Range
	label  hcl.Range
	attrs  hcl.Attributes
	blocks map[string]*hcl.Range // headers of the blocks in it, by kind: the last of each
	failed map[string]bool       // keys whose value was refused already
}

// checker is a block with rules beyond one key's own.
type checker interface{ check(*scope) }

// starter is a block that begins with values from elsewhere in the configuration.
type starter interface{ start(*Config) }

// written says whether a key is in the file.
func (s *scope) written(key string) bool { return s.attrs[key] != nil }

// errorf reports a fault of a key: at its value, or at the block's header when it is not written. One fault a key is enough.
func (s *scope) errorf(key, summary, format string, args ...any) {
	if s.failed[key] {
		return
	}
	at := s.at
	if attr := s.attrs[key]; attr != nil {
		at = attr.Expr.Range()
	}
	s.fault(at, summary, fmt.Sprintf(format, args...))
}

func (d *decoder) fault(at hcl.Range, summary, detail string) {
	d.report(hcl.DiagError, at, summary, detail)
}

// report adds a finding; the zero Range is for those that have no place in a file.
func (d *decoder) report(severity hcl.DiagnosticSeverity, at hcl.Range, summary, detail string) {
	diag := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	if at.Filename != "" {
		diag.Subject = at.Ptr()
	}
	d.diags = d.diags.Append(diag)
}

// position is where a range starts.
func position(at hcl.Range) Position { return Position{File: at.Filename, Line: at.Start.Line} }

// body decodes one block's content into a struct. With inherit, keys that are not written keep their values.
func (d *decoder) body(into reflect.Value, body hcl.Body, s *scope, inherit bool) {
	fields := fieldsOf(into.Type())
	short, body := d.shorthand(fields, body)
	content := d.content(fields, body, s)
	s.attrs, s.blocks, s.failed = content.Attributes, map[string]*hcl.Range{}, map[string]bool{}
	for _, b := range content.Blocks {
		s.blocks[b.Type] = &b.DefRange
	}
	byType := content.Blocks.ByType()
	for i := range fields {
		f := &fields[i]
		target := into.Field(f.index)
		if f.label != "" {
			continue
		}
		blocks := byType[f.name]
		switch {
		case f.labelled():
			d.labelledBlocks(f, target, blocks)
		case f.free():
			places := places{"": s.at}
			if block := d.single(blocks); block != nil {
				places[""] = block.DefRange
				d.within = append(d.within, f.name)
				target.SetBytes(d.freeform(block.Body, s.what, places))
				d.within = d.within[:len(d.within)-1]
			}
			d.cfg.configPlaces[d.owner] = places
		case f.block() != nil:
			d.blockField(f, target, blocks, inherit || f.inherit)
			if attr := short[f.name]; attr != nil {
				d.applyShorthand(f, target, attr, blocks)
			}
		default:
			d.attribute(f, target, s, inherit)
		}
	}
}

// single is the one block of a kind that may stand once, or nil; more are reported.
func (d *decoder) single(blocks hcl.Blocks) *hcl.Block {
	if len(blocks) == 0 {
		return nil
	}
	for _, again := range blocks[1:] {
		d.fault(again.DefRange, fmt.Sprintf("Second %s block", again.Type),
			fmt.Sprintf("The first one is at %s. Move its keys there.", position(blocks[0].DefRange)))
	}
	return blocks[0]
}

func (d *decoder) blockField(f *field, target reflect.Value, blocks hcl.Blocks, inherit bool) {
	block := d.single(blocks)
	if target.Kind() == reflect.Pointer {
		if block == nil {
			return
		}
		target.Set(reflect.New(f.block()))
		target = target.Elem()
	}
	if block == nil {
		if !inherit {
			d.defaults(target)
		}
		return
	}
	s := &scope{decoder: d, what: f.name, at: block.DefRange}
	d.scopes[f.name] = s
	d.checked(target, block.Body, s, inherit)
}

// defaults fills a block that is not in the file.
func (d *decoder) defaults(target reflect.Value) {
	fields := fieldsOf(target.Type())
	for i := range fields {
		f := &fields[i]
		switch v := target.Field(f.index); {
		case f.label != "" || f.labelled() || f.free() || v.Kind() == reflect.Pointer:
		case f.block() != nil:
			d.defaults(v)
		default:
			if def := f.defaultValue(); !def.IsNull() {
				d.set(f, v, def)
			}
		}
	}
}

func (d *decoder) labelledBlocks(f *field, target reflect.Value, blocks hcl.Blocks) {
	seen := map[string]hcl.Range{}
	for _, block := range blocks {
		label := block.Labels[0]
		s := &scope{decoder: d, what: fmt.Sprintf("%s %q", f.name, label), at: block.DefRange, label: block.LabelRanges[0]}
		if first, ok := seen[label]; ok {
			d.fault(s.label, fmt.Sprintf("Duplicate %s %q", f.name, label), fmt.Sprintf("The first one is at %s.", position(first)))
			continue
		}
		seen[label] = block.DefRange
		item := reflect.New(f.block()).Elem()
		item.FieldByName("Pos").Set(reflect.ValueOf(position(block.DefRange)))
		if b, ok := item.Addr().Interface().(starter); ok {
			b.start(d.cfg)
		}
		d.owner = label
		d.setLabel(item, label, s)
		d.checked(item, block.Body, s, false)
		target.Set(reflect.Append(target, item))
		d.labels[f.name] = append(d.labels[f.name], s.label)
	}
}

func (d *decoder) attribute(f *field, target reflect.Value, s *scope, inherit bool) {
	if def := f.defaultValue(); !inherit && !def.IsNull() {
		d.set(f, target, def)
	}
	attr := s.attrs[f.name]
	if attr == nil {
		if f.required {
			d.fault(s.at, fmt.Sprintf("Missing key %q", f.name), fmt.Sprintf("%s needs %s: %s.", s.what, f.name, f.wants()))
		}
		return
	}
	before := len(d.diags)
	if f.typ == expressionType {
		d.condition(target, attr)
	} else {
		d.evaluate(f, target, attr)
	}
	if d.diags[before:].HasErrors() {
		s.failed[f.name] = true
	}
}

// evaluate stores the value of an attribute; null counts as not written.
func (d *decoder) evaluate(f *field, target reflect.Value, attr *hcl.Attribute) {
	value, known, diags := d.value(attr)
	if diags.HasErrors() {
		d.diags = append(d.diags, d.explainWord(f, attr, diags)...)
		return
	}
	if !known {
		return
	}
	if !value.IsWhollyKnown() {
		d.fault(attr.Expr.Range(), "Invalid value for "+f.name, "The value cannot be known when the configuration is read.")
		return
	}
	if value.IsNull() {
		return
	}
	if f.secret && !value.IsMarked() {
		d.report(hcl.DiagWarning, attr.Expr.Range(), "Secret in the configuration file",
			fmt.Sprintf(`%s is readable for everyone who may read this file. Write secret("env:NAME"), secret("file:PATH") or secret("credential:NAME") instead.`, f.name))
		value = value.Mark(secretMark{})
		defer d.hideSource(attr.Expr.Range())
	}
	if problem := d.set(f, target, value); problem != "" {
		d.fault(attr.Expr.Range(), "Invalid value for "+f.name, problem)
	}
}

// hideSource keeps a literal secret out of the source lines that findings show, where it has another look than its value:
// "\n" for a line's end, or a line of a heredoc.
func (d *decoder) hideSource(at hcl.Range) {
	file := d.files[at.Filename]
	if file == nil || !at.CanSliceBytes(file.Bytes) {
		return
	}
	marker := "" // of a heredoc: a word like others, no secret
	for line := range strings.Lines(string(at.SliceBytes(file.Bytes))) {
		line = strings.Trim(line, " \t\r\n\"")
		if begun, ok := strings.CutPrefix(line, "<<"); ok {
			marker = cmp.Or(marker, strings.TrimPrefix(begun, "-"))
		} else if len(line) >= redact.MinLength && line != marker {
			d.secrets.addDerived(line)
		}
	}
}

// explainWord turns "variables not allowed" for a bare word into what was meant: a text without its quotes.
func (d *decoder) explainWord(f *field, attr *hcl.Attribute, diags hcl.Diagnostics) hcl.Diagnostics {
	expr, ok := attr.Expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(expr.Traversal) != 1 {
		return diags
	}
	if f.secret || redact.SecretName(f.name) {
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Invalid value for " + f.name, Subject: expr.Range().Ptr(),
			Detail: fmt.Sprintf("%s must be %s. A text needs quotes.", f.name, f.wants()),
		}}
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Invalid value for " + f.name, Subject: expr.Range().Ptr(),
		Detail: fmt.Sprintf("%s must be %s. A text needs quotes: %q.", f.name, f.wants(), expr.Traversal.RootName()),
	}}
}

// toolset remembers a toolset's name that a list of a key holds at index i, with its place if the list is written out.
func (s *scope) toolset(key string, i int, name string) {
	attr := s.attrs[key]
	if attr == nil {
		return
	}
	at := attr.Expr.Range()
	if items, diags := hcl.ExprList(attr.Expr); !diags.HasErrors() && i < len(items) {
		at = items[i].Range()
	}
	s.refs = append(s.refs, toolsetRef{name: name, at: at})
}

// absolute starts a relative path at the configuration file's folder.
func (d *decoder) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.dir, path)
}

// program makes a command's program absolute unless it is to be looked up in PATH.
func (d *decoder) program(command []string) {
	if len(command) > 0 && strings.ContainsRune(command[0], filepath.Separator) {
		command[0] = d.absolute(command[0])
	}
}
