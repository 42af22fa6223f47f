package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/config"
)

const placed = `plugin "a" {
  path = "/a"
  config {
    root = "/srv"
    limits = {
      bytes = 1
      "odd/key" = [
        1,
        { deep = 2 },
      ]
    }
    rule "x" {
      on = true
    }
  }
}

plugin "b" {
  path = "/b"
}
`

func TestEveryKeyOfAPluginsConfigHasItsPlace(t *testing.T) {
	for _, file := range []struct{ path, text string }{{"/etc/h.hcl", placed}} {
		cfg, diags := config.Parse(file.path, []byte(file.text), nil)
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		want := map[string]int{
			"": 3, "/root": 4, "/limits": 5, "/limits/bytes": 6, "/limits/odd~1key": 7, "/limits/odd~1key/0": 8,
			"/limits/odd~1key/1/deep": 9, "/rule/x": 12, "/rule/x/on": 13,
			"/root/below": 4, "/unwritten": 3, "/limits/unwritten": 5,
		}
		got := map[string]int{}
		for pointer := range want {
			at := cfg.PluginConfigAt("a", pointer)
			if at.File != file.path {
				t.Errorf("%s is in %q", pointer, at.File)
			}
			got[pointer] = at.Line
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if at := cfg.PluginConfigAt("b", "/root"); at.Line != 18 {
			t.Errorf("without a block: %v", at)
		}
		if at := cfg.PluginConfigAt("c", ""); at != (config.Position{}) {
			t.Errorf("an unknown plugin: %v", at)
		}
	}
}

func TestAKeyInJSONSyntaxHasItsPlace(t *testing.T) {
	cfg, diags := config.Parse("/etc/h.hcl.json", []byte("{\"plugin\": {\"a\": {\"path\": \"/a\",\n\"config\": {\n\"root\": 1}}}}"), nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if at := cfg.PluginConfigAt("a", "/root"); at.Line != 3 {
		t.Errorf("place %v", at)
	}
}

func TestAPluginsFaultIsShownWithItsLine(t *testing.T) {
	cfg, diags := config.Parse("/etc/h.hcl", []byte(placed), nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	found := cfg.Diagnose([]config.PluginFault{
		{Plugin: "b", Pointer: "/root", Summary: "is missing"},
		{Plugin: "a", Pointer: "/limits/bytes", Summary: "is small", Detail: "Make it bigger.", Warning: true},
		{Plugin: "gone", Summary: "was removed"},
	})
	var text strings.Builder
	if _, err := found.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	want := `Warning: Plugin "a": is small

  on /etc/h.hcl line 6, in plugin "a":
   6:       bytes = 1

Make it bigger.

Error: Plugin "b": is missing

  on /etc/h.hcl line 18, in plugin "b":
  18: plugin "b" {

`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}
