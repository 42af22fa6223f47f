package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/runtime/tool"
)

func TestFullName(t *testing.T) {
	cases := map[string]struct {
		parts []string
		want  string
	}{
		"parts are joined by two underscores":           {[]string{"mcp", "github", "create_issue"}, "mcp__github__create_issue"},
		"a single part stays as it is":                  {[]string{"files_read"}, "files_read"},
		"a replaced character brings a hash":            {[]string{"mcp", "a", "b.c"}, "mcp__a__b_c_edbae509"},
		"another replaced character brings another one": {[]string{"mcp", "a", "b/c"}, "mcp__a__b_c_1c6908bf"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tool.FullName(c.parts...); got != c.want {
				t.Errorf("FullName(%q) = %q, want %q", c.parts, got, c.want)
			}
		})
	}
}

func TestFullNameIsAlwaysValidAndTellsLongNamesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringN(1, 200, 400).Draw(t, "a")
		b := rapid.StringN(1, 200, 400).Draw(t, "b")
		x, y := tool.FullName("mcp", a), tool.FullName("mcp", b)
		if !tool.ValidName(x) {
			t.Fatalf("FullName(%q) = %q is not valid", a, x)
		}
		if a != b && x == y {
			t.Fatalf("%q and %q share the name %q", a, b, x)
		}
		if x != tool.FullName("mcp", a) {
			t.Fatal("the name is not stable")
		}
	})
}

func TestValidName(t *testing.T) {
	for name, ok := range map[string]bool{
		"": false, "a": true, "a-b_C9": true, "a b": false, "ä": false,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
	} {
		if tool.ValidName(name) != ok {
			t.Errorf("ValidName(%q) = %t", name, !ok)
		}
	}
}

func TestAnnotationsThatAreUnsaidReadCautiously(t *testing.T) {
	yes, no := true, false
	var unsaid tool.Annotations
	if unsaid.IsReadOnly() || !unsaid.IsDestructive() || unsaid.IsIdempotent() || !unsaid.IsOpenWorld() || unsaid.IsParallelSafe() {
		t.Errorf("unsaid reads as %+v", unsaid)
	}
	if (tool.Annotations{ReadOnly: &yes, Destructive: &yes}).IsDestructive() {
		t.Error("a read-only tool destroys nothing, whatever else it claims")
	}
	if (tool.Annotations{Destructive: &no}).IsDestructive() {
		t.Error("a tool that says it is not destructive is not")
	}
}

func TestContentKeepsTheBytesOfOthers(t *testing.T) {
	raw := `{"type":"text", "text":"<b>&</b>","annotations":{"priority":0.30}}`
	var c tool.Content
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatal(err)
	}
	if string(c) != raw {
		t.Errorf("content changed: %s", c)
	}
	if text, ok := c.AsText(); !ok || text != "<b>&</b>" {
		t.Errorf("AsText = %q, %t", text, ok)
	}
	if got := string(tool.Text("<b>&</b>")); got != `{"type":"text","text":"<b>&</b>"}` {
		t.Errorf("our own text is escaped: %s", got)
	}
	if got := string(tool.Image("image/png", []byte{1, 2})); got != `{"type":"image","data":"AQI=","mimeType":"image/png"}` {
		t.Errorf("image = %s", got)
	}
	if _, ok := tool.Image("image/png", nil).AsText(); ok {
		t.Error("an image is no text")
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	e := tool.Errorf(tool.ProviderStarting, "github is starting: %w", cause).With("hint", "wait")
	if !e.Retryable || e.Blame != tool.BlameHost {
		t.Errorf("the table's blame and retryability are not there: %+v", e)
	}
	wrapped := fmt.Errorf("outer: %w", e)
	if !errors.Is(wrapped, &tool.Error{Code: tool.ProviderStarting}) || !errors.Is(wrapped, cause) {
		t.Error("the chain is broken")
	}
	if errors.Is(wrapped, &tool.Error{Code: tool.Timeout}) {
		t.Error("another code matched")
	}
	for want, err := range map[tool.Code]error{
		"":                    nil,
		tool.Timeout:          fmt.Errorf("x: %w", context.DeadlineExceeded),
		tool.Cancelled:        context.Canceled,
		tool.Internal:         cause,
		tool.ProviderStarting: wrapped,
	} {
		if got := tool.CodeOf(err); got != want {
			t.Errorf("CodeOf(%v) = %q, want %q", err, got, want)
		}
	}
	var o map[string]any
	if err := json.Unmarshal([]byte(e.Result().Text()), &o); err != nil {
		t.Fatal(err)
	}
	if o["error"] != "github is starting: cause" || o["code"] != "provider_starting" || o["hint"] != "wait" || o["retryable"] != true {
		t.Errorf("agents read %v", o)
	}
	unmarshalable := tool.Errorf(tool.Internal, "odd").With("f", func() {})
	if !strings.Contains(unmarshalable.Result().Text(), "odd") {
		t.Error("an extra that cannot be marshalled hides the message")
	}
}

func TestEveryCodeOfTheTableIsOnTheErrorsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("codes.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Code string }
	if err := json.Unmarshal(table, &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !strings.Contains(string(page), "| `"+r.Code+"` |") {
			t.Errorf("docs/errors.md lacks %s; run go generate ./runtime/tool", r.Code)
		}
	}
}
