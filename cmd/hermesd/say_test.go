package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/audit"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/mcpclient"
)

// forged moves the cursor, names the window, rings, turns the direction, and begins a line that looks like the program's.
const forged = "\x1b[2J\x1b]0;pwn\aX\u009b1A\u202e\n999 finished\tok\rz\xff"

func TestWhatOthersWroteCannotForgeOutput(t *testing.T) {
	entry, err := json.Marshal(audit.Entry{Tool: forged})
	if err != nil {
		t.Fatal(err)
	}
	result, err := json.Marshal(map[string]any{"content": []map[string]string{{"type": "image", "mimeType": forged}, {"type": "resource_link", "uri": forged}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, print := range map[string]func(c *cli) error{
		"records of made up names": func(c *cli) error { return c.printEntries([][]byte{entry}, false) },
		"a tool's description": func(c *cli) error {
			return c.printTools(&adminpb.ListToolsResponse{Tools: []*adminpb.Tool{{Name: "t", Description: strings.ReplaceAll(forged, "\n", " ")}}}, true)
		},
		"what a server calls itself": func(c *cli) error {
			return c.printSteps(&mcpclient.Report{ServerName: forged, Steps: []mcpclient.Step{{Name: "handshake"}}})
		},
		"why a server fails": func(c *cli) error {
			return c.printSteps(&mcpclient.Report{Steps: []mcpclient.Step{{Name: "handshake", Err: errors.New(forged)}}})
		},
		"why a provider fails": func(c *cli) error {
			return c.printProviders([]*adminpb.ProviderStatus{{Reason: forged}})
		},
		"a finding": func(c *cli) error { return c.printFindings([]finding{{Text: forged}}) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := print(&cli{out: &out, err: &out}); err != nil {
				t.Fatal(err)
			}
			checkShown(t, out.String())
		})
	}
	t.Run("facts of a result", func(t *testing.T) {
		var out bytes.Buffer
		if err := (&cli{out: &out}).printResult(&adminpb.Result{Result: result}); err != nil {
			t.Fatal(err)
		}
		checkShown(t, out.String())
	})
}

func checkShown(t *testing.T, out string) {
	t.Helper()
	if strings.ContainsAny(out, "\x1b\a\r\u009b\u202e") || !utf8.ValidString(out) || strings.Contains(out, "\n999") || !strings.Contains(out, `\x1b[2J`) {
		t.Errorf("printed %q", out)
	}
}

func TestTheTextOfAResultIsEscapedForATerminalOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		terminal bool
		want     string
	}{
		"piped":    {false, forged + "\n"},
		"terminal": {true, `\x1b[2J\x1b]0;pwn\aX\u009b1A\u202e` + "\n999 finished\tok" + `\rz` + "\uFFFD\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := (&cli{out: &out, terminal: tt.terminal}).printText(forged); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only say.go prints with package fmt, so that nothing passes it by.
func TestAllOutputPassesSay(t *testing.T) {
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", func(f fs.FileInfo) bool {
		return f.Name() != "say.go" && !strings.HasSuffix(f.Name(), "_test.go")
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(packages["main"], func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := f.X.(*ast.Ident)
		if !ok || pkg.Name != "fmt" || !strings.HasPrefix(f.Sel.Name, "Fprint") && !strings.HasPrefix(f.Sel.Name, "Print") {
			return true
		}
		if to, ok := call.Args[0].(*ast.UnaryExpr); ok && to.Op == token.AND {
			return true // a text that is being built
		}
		if to, ok := call.Args[0].(*ast.Ident); ok && to.Name == "b" {
			return true // the same
		}
		t.Errorf("%s: print with sayf", files.Position(call.Pos()))
		return true
	})
}
