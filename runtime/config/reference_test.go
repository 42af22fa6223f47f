package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:generate go test -run ^TestTheReferencePageIsWhatTheStructsSay$ . -update

const referencePath = "../../docs/operators/configuration.md"

// The page for operators is made from the tags and comments of the structs, so that each key is described once.
func TestTheReferencePageIsWhatTheStructsSay(t *testing.T) {
	page := referencePage(t)
	if *Update {
		if err := os.MkdirAll(filepath.Dir(referencePath), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(referencePath, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(written), "\n"), strings.Split(page, "\n")); diff != "" {
		t.Errorf("%s is not what the structs say; run go generate ./runtime/config (-page +structs):\n%s", referencePath, diff)
	}
}

const referenceIntro = `# Configuration reference

<!-- Generated from runtime/config by go generate; edit the comments there. -->

hermesd reads one file, and the files of the folder ` + "`conf.d`" + ` beside it that end in ` + "`.hcl`" + ` or ` + "`.hcl.json`" + `, in the order of
their names. All of them are in HCL's native syntax, or in its JSON syntax if the name ends in ` + "`.json`" + `. They are one
configuration: a block or key that may stand once may stand once in all of them. ` + "`config.hcl.example`" + ` shows every key.

* ` + "`hermesd config check`" + ` says what is wrong, with file and line; ` + "`config show`" + ` prints the result with all defaults and
  without secrets; ` + "`config fmt`" + ` lays a file out.
* Relative paths start at the folder of the main file.
* A duration is a text such as ` + "`\"500ms\"`, `\"30s\"`, `\"1m30s\"`, `\"12h\"` or `\"90d\"`" + `; a size is a whole number with ` + "`B`, `KiB`, `MiB`, `GiB` or `TiB`" + `.
* A file has at most %s, and ` + "`conf.d`" + ` at most %d files.

## Functions

| Function | Result |
| --- | --- |
| ` + "`secret(\"env:NAME\")`" + ` | the environment variable's value; masked in logs, audit, errors and ` + "`config show`" + `, like every secret |
| ` + "`secret(\"file:PATH\")`" + ` | the file's text without the newline at its end |
| ` + "`secret(\"credential:NAME\")`" + ` | the file of that name in ` + "`$CREDENTIALS_DIRECTORY`" + `, where systemd's ` + "`LoadCredential=`" + ` puts it |
| ` + "`env(\"NAME\")`, `env(\"NAME\", \"default\")`" + ` | the environment variable's value; without a default it must be set |
| ` + "`file(\"PATH\")`" + ` | the file's text |
| ` + "`path(\"PATH\")`" + ` | the absolute path, for a plugin's own configuration |

Besides: %s.

A secret is shown as ` + "`***`" + ` wherever hermesd says something: in its log, in what it keeps of providers' output, in states and
reasons, errors, progress and log events of calls, approvals, the audit, and ` + "`config show`" + `; also where it is escaped as in JSON,
in a URL or in a quoted text, and line by line if it has several. Secrets are what ` + "`secret(…)`" + ` gives, literal values of keys that
are for secrets, what a provider's ` + "`env`" + `, ` + "`pass_env`" + ` and ` + "`headers`" + ` hold under a name such as ` + "`GITHUB_TOKEN`" + ` or
` + "`Authorization`" + `, OAuth tokens, and an agent's token once it was presented. Values of fewer than 4 bytes are masked only where
they are a whole text; ` + "`hermesd config check`" + ` warns of them. The results of tools are what tools say and stay as they are.
`

func referencePage(t *testing.T) string {
	t.Helper()
	docs := fieldComments(t)
	var own []string
	for name := range (&decoder{}).functions((*Environment)(nil).orProcess()) {
		if !slices.Contains([]string{"secret", "env", "file", "path"}, name) {
			own = append(own, "`"+name+"`")
		}
	}
	slices.Sort(own)
	var b strings.Builder
	fmt.Fprintf(&b, referenceIntro, Size(MaxFileBytes), maxFiles, strings.Join(own, ", "))
	section(&b, docs, "Keys outside blocks", "", reflect.TypeFor[Config]())
	return b.String()
}

// section writes the keys of one block, and then the blocks inside it.
func section(b *strings.Builder, docs map[string]string, title, prefix string, t reflect.Type) {
	fmt.Fprintf(b, "\n## %s\n", title)
	if text := docs[t.Name()]; t != reflect.TypeFor[Config]() {
		fmt.Fprintf(b, "\n%s\n", text)
	}
	fields := fieldsOf(t)
	b.WriteString("\n| Key | Value | Default | Meaning |\n| --- | --- | --- | --- |\n")
	for i := range fields {
		f := &fields[i]
		text := docs[t.Name()+"."+t.Field(f.index).Name]
		switch {
		case f.label != "":
			fmt.Fprintf(b, "| (label) | %s | | %s |\n", labelRule(f), text)
		case f.free(), f.inherit:
			fmt.Fprintf(b, "| `%s` | a block | | %s |\n", f.name, text)
		case f.block() == nil:
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.name, strings.ReplaceAll(f.wants(), "|", `\|`), shownDefault(f), text)
		case prefix != "":
			fmt.Fprintf(b, "| `%s` | a block, below | | %s |\n", f.name, text)
		}
	}
	for i := range fields {
		f := &fields[i]
		if f.block() == nil || f.inherit {
			continue
		}
		name := prefix + f.name
		header := "`" + name + "`"
		if f.labelled() {
			header = "`" + name + " \"NAME\"`"
		}
		section(b, docs, header, name+" ", f.block())
	}
}

func labelRule(f *field) string {
	if f.label == "text" {
		return fmt.Sprintf("1 to %d characters", maxTextLabel)
	}
	low, high, _ := strings.Cut(f.label, "-")
	return fmt.Sprintf("%s to %s of `a-z0-9_-`, without `__`", low, high)
}

func shownDefault(f *field) string {
	switch {
	case f.required:
		return "required"
	case f.def == "":
		return ""
	case f.defaultValue().Type().FriendlyName() == "string":
		return fmt.Sprintf("`%q`", f.def)
	}
	return "`" + f.def + "`"
}

// fieldComments reads the comments of the structs and their fields, the Go names in them replaced by the keys.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				typ := spec.(*ast.TypeSpec)
				fields, ok := typ.Type.(*ast.StructType)
				if !ok {
					continue
				}
				docs[typ.Name.Name] = oneLine(general.Doc.Text(), typ.Name.Name)
				for _, field := range fields.Fields.List {
					if field.Tag == nil {
						continue
					}
					name := field.Names[0].Name
					docs[typ.Name.Name+"."+name] = oneLine(field.Doc.Text(), name)
				}
			}
		}
	}
	return docs
}

// oneLine makes a comment a table cell: "Level is the least …" without the Go name is "The least …".
func oneLine(comment, name string) string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(comment), " "), "|", `\|`)
	text = strings.TrimPrefix(text, name+" ")
	for _, verb := range []string{"is ", "are ", "says that ", "says "} {
		if rest, ok := strings.CutPrefix(text, verb); ok {
			text = rest
			break
		}
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func TestEveryKeyHasAMeaning(t *testing.T) {
	docs := fieldComments(t)
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for _, f := range fieldsOf(typ) {
			inner := f.block()
			if inner == nil && docs[typ.Name()+"."+typ.Field(f.index).Name] == "" {
				t.Errorf("%s.%s has no comment", typ.Name(), typ.Field(f.index).Name)
			}
			if inner != nil {
				walk(inner)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}
