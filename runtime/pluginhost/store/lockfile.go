package store

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/hermesd/hermesd/internal/atomicfile"
)

// LockName is the lock file's name, in the folder that [OpenLock] is given.
const LockName = "hermesd.lock.hcl"

const (
	lockFormat   = 1
	maxLockBytes = 64 << 20
	lockHead     = `// What hermesd was told to trust: the binary and the tool definitions of every provider, as they were first seen or accepted
// with "hermesd plugin lock NAME". Written by hermesd; keep it under version control if you like. Digests are SHA-256.

`
)

// entry is what was accepted of one provider.
type entry struct {
	Kind     string
	Binary   string // "" where there is none or it has not been seen
	Accepted time.Time
	Tools    map[string]string // own name to the digest of its definition
}

func (e *entry) clone() *entry {
	c := *e
	c.Tools = maps.Clone(e.Tools)
	return &c
}

func (e *entry) equal(other *entry) bool {
	return e != nil && other != nil && e.Kind == other.Kind && e.Binary == other.Binary && maps.Equal(e.Tools, other.Tools)
}

// lockFile is the file's content. What cannot be read of it stays unknown: nobody is trusted for want of an entry that may
// have been there.
type lockFile struct {
	providers map[string]*entry
	damaged   map[string]string // provider to what is wrong with its entry
	damage    string            // what is wrong with the whole file
}

func (f *lockFile) of(name string) (*entry, string) {
	if f.damage != "" {
		return nil, f.damage
	}
	return f.providers[name], f.damaged[name]
}

func (f *lockFile) clone() *lockFile {
	c := &lockFile{providers: make(map[string]*entry, len(f.providers)), damaged: maps.Clone(f.damaged), damage: f.damage}
	for name, e := range f.providers {
		c.providers[name] = e.clone()
	}
	return c
}

func parseLock(content []byte) *lockFile {
	f := &lockFile{providers: map[string]*entry{}, damaged: map[string]string{}}
	if content == nil {
		return f
	}
	parsed, diags := hclsyntax.ParseConfig(content, LockName, hcl.InitialPos)
	if diags.HasErrors() {
		f.damage = describe(diags)
		return f
	}
	body, diags := parsed.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "format", Required: true}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "provider", LabelNames: []string{"name"}}},
	})
	if diags.HasErrors() {
		f.damage = describe(diags)
		return f
	}
	if format, diags := body.Attributes["format"].Expr.Value(nil); diags.HasErrors() || format.Type() != cty.Number || !format.RawEquals(cty.NumberIntVal(lockFormat)) {
		f.damage = fmt.Sprintf("its format is not %d: it was written by another version of hermesd", lockFormat)
		return f
	}
	for _, block := range body.Blocks {
		name := block.Labels[0]
		e, err := parseEntry(block)
		switch {
		case !ValidName(name):
			f.damage = fmt.Sprintf("line %d: %q is no provider's name", block.DefRange.Start.Line, name)
			return f
		case f.providers[name] != nil || f.damaged[name] != "":
			f.damaged[name] = fmt.Sprintf("line %d: a second entry of %q", block.DefRange.Start.Line, name)
			delete(f.providers, name)
		case err != nil:
			f.damaged[name] = err.Error()
		default:
			f.providers[name] = e
		}
	}
	return f
}

func describe(diags hcl.Diagnostics) string {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			if d.Subject != nil {
				return fmt.Sprintf("line %d: %s", d.Subject.Start.Line, d.Summary)
			}
			return d.Summary
		}
	}
	return "it cannot be read"
}

func parseEntry(block *hcl.Block) (*entry, error) {
	attrs, diags := block.Body.JustAttributes()
	if diags.HasErrors() {
		return nil, fmt.Errorf("%s", describe(diags))
	}
	e := &entry{Tools: map[string]string{}}
	for name, attr := range attrs {
		line := attr.Range.Start.Line
		value, diags := attr.Expr.Value(nil)
		if diags.HasErrors() || value.IsNull() || !value.IsWhollyKnown() {
			return nil, fmt.Errorf("line %d: %s cannot be read", line, name)
		}
		text := ""
		if value.Type() == cty.String {
			text = value.AsString()
		}
		var err error
		switch name {
		case "damaged": // as render writes it, so that what cannot be read stays refused
			return nil, errors.New(cmp.Or(text, "it could not be read"))
		case "kind":
			e.Kind = text
		case "accepted":
			e.Accepted, err = time.Parse(time.RFC3339, text)
		case "binary":
			if e.Binary = text; !digestPattern.MatchString(text) {
				err = fmt.Errorf("%q is no SHA-256", text)
			}
		case "tools":
			err = parseTools(value, e.Tools)
		default:
			err = fmt.Errorf("no such key")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", line, name, err)
		}
	}
	return e, nil
}

func parseTools(value cty.Value, into map[string]string) error {
	if !value.Type().IsObjectType() {
		return fmt.Errorf("it is no object")
	}
	for name, digest := range value.AsValueMap() {
		if digest.IsNull() || digest.Type() != cty.String || !digestPattern.MatchString(digest.AsString()) {
			return fmt.Errorf("%q has no SHA-256", name)
		}
		into[name] = digest.AsString()
	}
	return nil
}

// render writes the file's text, the same for the same content.
func (f *lockFile) render() []byte {
	file := hclwrite.NewEmptyFile()
	body := file.Body()
	body.SetAttributeValue("format", cty.NumberIntVal(lockFormat))
	for _, name := range slices.Sorted(maps.Keys(f.damaged)) {
		if f.providers[name] != nil {
			continue
		}
		body.AppendNewline()
		body.AppendNewBlock("provider", []string{name}).Body().SetAttributeValue("damaged", cty.StringVal(f.damaged[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(f.providers)) {
		e := f.providers[name]
		body.AppendNewline()
		block := body.AppendNewBlock("provider", []string{name}).Body()
		block.SetAttributeValue("kind", cty.StringVal(e.Kind))
		if e.Binary != "" {
			block.SetAttributeValue("binary", cty.StringVal(e.Binary))
		}
		block.SetAttributeValue("accepted", cty.StringVal(e.Accepted.UTC().Format(time.RFC3339)))
		tools := map[string]cty.Value{}
		for own, digest := range e.Tools {
			tools[own] = cty.StringVal(digest)
		}
		block.SetAttributeValue("tools", cty.ObjectVal(tools))
	}
	return append([]byte(lockHead), file.Bytes()...)
}

// write replaces the file. If it held something that could not be read, a copy of it is kept beside.
func (f *lockFile) write(dir string) error {
	path := filepath.Join(dir, LockName)
	if len(f.damaged) > 0 {
		before, err := readBounded(path, maxLockBytes)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(path+".damaged", before); err != nil {
			return err
		}
	}
	return atomicfile.Write(path, f.render())
}

// reader reads a lock file and parses it only when it has changed: with thousands of tools that takes longer, and more
// memory, than all else that the file is for.
type reader struct {
	mu   sync.Mutex
	sum  [sha256.Size]byte
	file *lockFile // what the content with this sum says; nil before the first read. It is never changed
}

func (r *reader) read(dir string) (*lockFile, error) {
	content, err := readBounded(filepath.Join(dir, LockName), maxLockBytes)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil || r.sum != sum || len(content) == 0 { // no file is not the same as an empty one, which is damaged
		r.sum, r.file = sum, parseLock(content)
	}
	return r.file.clone(), nil
}

func readLock(dir string) (*lockFile, error) {
	content, err := readBounded(filepath.Join(dir, LockName), maxLockBytes)
	if err != nil {
		return nil, err
	}
	return parseLock(content), nil
}
