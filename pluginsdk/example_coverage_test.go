package pluginsdk_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestEveryEntryPointHasAnExample reads the package's own files: an exported function without a runnable example is found.
func TestEveryEntryPointHasAnExample(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	exported, examples := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			if name, ok := strings.CutPrefix(fn.Name.Name, "Example"); ok && strings.HasSuffix(e.Name(), "_test.go") {
				examples[name] = true
			} else if fn.Name.IsExported() && !strings.HasSuffix(e.Name(), "_test.go") {
				exported[fn.Name.Name] = true
			}
		}
	}
	for name := range exported {
		if !examples[name] {
			t.Errorf("%s has no example", name)
		}
	}
	if len(exported) < 15 {
		t.Errorf("only these were found: %v", exported)
	}
}
