package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/testenv"
)

// TestMain lets this test binary be the plugin, as a person would start it by hand.
func TestMain(m *testing.M) {
	if os.Getenv("CATALOG_TEST_PLUGIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func run(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "CATALOG_TEST_PLUGIN=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && errs.Len() == 0 {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), errs.String()
}

type described struct {
	Tools []struct {
		Name, Toolset, Title, Coldness string
		InputSchema                    json.RawMessage `json:"input_schema"`
	}
}

// names lists what the plugin offers with a configuration.
func names(t *testing.T, config map[string]any) ([]string, described, string) {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	out, errs := run(t, "describe", "--config", string(raw))
	var d described
	if out != "" {
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, tool := range d.Tools {
		got = append(got, tool.Name)
	}
	return got, d, errs
}

const lines = `{"name":"github__create_issue","description":"Create an issue.","parameters":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]},"source":"github"}
{"name":"slack__post","description":"Post.","parameters":{"type":"object"},"source":"slack"}

{"name":"github__close issue","parameters":{"type":"object"},"source":"github"}
{"name":"broken","parameters":{"type":"array"},"source":"odd"}
{"name":"slack__post","description":"A twin.","parameters":{"type":"object"},"source":"slack"}
`

func catalogFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	b := []byte(content)
	if strings.HasSuffix(name, ".gz") {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		b = z.Bytes()
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestItServesACatalogPlainOrCompressedByConfiguration(t *testing.T) {
	plain, zipped := catalogFile(t, "c.jsonl", lines), catalogFile(t, "c.jsonl.gz", lines)
	closeIssue := toolName("github__close issue")
	for name, c := range map[string]struct {
		config map[string]any
		want   []string
	}{
		"all":              {map[string]any{"file": plain}, []string{"github__create_issue", "slack__post", closeIssue}},
		"compressed":       {map[string]any{"file": zipped}, []string{"github__create_issue", "slack__post", closeIssue}},
		"one source":       {map[string]any{"file": plain, "source": []string{"slack"}}, []string{"slack__post"}},
		"a limit":          {map[string]any{"file": plain, "limit": 1}, []string{"github__create_issue"}},
		"inline":           {map[string]any{"inline": []any{map[string]any{"name": "x"}}}, []string{"x"}},
		"file and inline":  {map[string]any{"file": plain, "source": []string{"slack"}, "inline": []any{map[string]any{"name": "x"}}}, []string{"slack__post", "x"}},
		"inline and limit": {map[string]any{"inline": []any{map[string]any{"name": "x"}, map[string]any{"name": "y"}}, "limit": 1}, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, errs := names(t, c.config)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, errs)
			}
			if name == "all" && !strings.Contains(errs, "count=2 first=broken") {
				t.Errorf("what is left out is not said: %q", errs)
			}
		})
	}
}

func TestADefinitionIsTheLineOfTheCatalog(t *testing.T) {
	_, d, _ := names(t, map[string]any{"file": catalogFile(t, "c.jsonl", lines), "source": []string{"github"}})
	first, second := d.Tools[0], d.Tools[1]
	var schema bytes.Buffer // describe indents it
	if err := json.Compact(&schema, first.InputSchema); err != nil {
		t.Fatal(err)
	}
	if first.Toolset != "github" || first.Coldness != "external" || first.Title != "" ||
		schema.String() != `{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}` {
		t.Errorf("tool = %+v %s", first, schema.String())
	}
	if second.Title != "github__close issue" || !strings.HasPrefix(second.Name, "github__close_issue_") {
		t.Errorf("a name that cannot be called: %+v", second)
	}
}

func TestEveryCallAnswersWithItsArguments(t *testing.T) {
	config, err := json.Marshal(map[string]any{"file": catalogFile(t, "c.jsonl", lines)})
	if err != nil {
		t.Fatal(err)
	}
	const args = `{"title":"a <b>","n":9007199254740993}`
	if out, errs := run(t, "invoke", "--config", string(config), "github__create_issue", args); out != args {
		t.Errorf("result = %q, %q", out, errs)
	}
	if _, errs := run(t, "invoke", "--config", string(config), "github__create_issue", `{}`); !strings.Contains(errs, "invalid_arguments") {
		t.Errorf("without a title: %q", errs)
	}
}

func TestAFaultyConfigurationNamesItsKey(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		want   []string
	}{
		"nothing":         {map[string]any{"limit": 3}, []string{"nothing to serve"}},
		"a missing file":  {map[string]any{"file": "/no/such.jsonl"}, []string{"/file", "no such file"}},
		"no gzip":         {map[string]any{"file": catalogFile(t, "c.gz", "")}, []string{}},
		"a broken line":   {map[string]any{"file": catalogFile(t, "c.jsonl", lines+"{")}, []string{"/file", "line 7"}},
		"a nameless line": {map[string]any{"file": catalogFile(t, "c.jsonl", `{"description":"x"}`)}, []string{"/file", "line 1", "no name"}},
		"a wrong source":  {map[string]any{"file": catalogFile(t, "c.jsonl", lines), "source": []string{"gitlab"}}, []string{"/source", "no tool"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, errs := names(t, c.config)
			if got != nil || !strings.Contains(errs, "configuration") {
				t.Errorf("it serves %v, %q", got, errs)
			}
			for _, w := range c.want {
				if !strings.Contains(errs, w) {
					t.Errorf("error %q lacks %q", errs, w)
				}
			}
		})
	}
}

func TestNamesAreMadeCallableAndStayUnique(t *testing.T) {
	long := strings.Repeat("a", 70)
	for in, want := range map[string]string{
		"good_name-1":  "good_name-1",
		"a b":          "a_b_" + toolName("a b")[4:],
		long:           strings.Repeat("a", 55) + toolName(long)[55:],
		"überraschung": "_berraschung" + toolName("überraschung")[12:],
	} {
		if got := toolName(in); got != want || len(got) > maxName {
			t.Errorf("%q = %q, want %q", in, got, want)
		}
	}
	if toolName("a b") == toolName("a.b") || toolName(long) == toolName(long+"a") {
		t.Error("two names became one")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(lines))
	f.Add([]byte(`{"name":"x","parameters":7}`))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := read(t.Context(), bytes.NewReader(b), nil, 0)
		if err != nil {
			return
		}
		tools, left := makeTools(entries)
		if len(tools)+len(left) != len(entries) {
			t.Fatalf("%d tools and %d left out of %d", len(tools), len(left), len(entries))
		}
	})
}

// The real catalogs, where they are at hand: what is served is all but a few.
func TestRealCatalogsAreServed(t *testing.T) {
	dir := testenv.Data(t)
	for set, want := range map[string]int{"mcptools": 2784, "livemcp": 526, "npm-servers": 1692} {
		entries, err := readFile(t.Context(), filepath.Join(dir, set, "catalog.jsonl.gz"), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if tools, left := makeTools(entries); len(tools) != want {
			t.Errorf("%s: %d tools of %d, left out: %v", set, len(tools), len(entries), left)
		}
	}
}
