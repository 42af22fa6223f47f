package schema_test

import (
	"testing"

	"github.com/hermesd/hermesd/runtime/schema"
)

func TestAFaultsPathIsAPointer(t *testing.T) {
	for path, want := range map[string]string{
		"arguments":                      "",
		"arguments.options.count":        "/options/count",
		"arguments.tags[2]":              "/tags/2",
		`arguments["odd key"].x`:         "/odd key/x",
		`arguments["a\"]b/c~d"][0].deep`: `/a"]b~1c~0d/0/deep`,
		"arguments..":                    "",
		`arguments["open`:                "",
	} {
		if got := schema.Pointer(path); got != want {
			t.Errorf("Pointer(%s) = %q, want %q", path, got, want)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add(`arguments["a"].b[0]`)
	f.Fuzz(func(_ *testing.T, path string) { schema.Pointer(path) })
}
