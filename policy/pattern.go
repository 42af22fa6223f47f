package policy

import (
	"fmt"
	"path"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// The prefixes of a pattern that selects by something else than the name.
const (
	toolsetPrefix = "toolset:"
	sourcePrefix  = "source:"
)

// MatchPattern reports whether pattern selects d. A pattern is a tool's full name, a glob over it (*, ? and [] as in
// path.Match, but that * crosses slashes, which stand in the names of a library's methods), "toolset:NAME" or "source:KIND";
// NAME and KIND may be globs. A malformed glob selects nothing; see [CheckPattern]. Toolsets that the operator composed are
// known to [Toolsets.Match] only.
func MatchPattern(pattern string, d *tool.Definition) bool {
	return (*Toolsets)(nil).Match(pattern, d)
}

// CheckPattern returns why pattern can select nothing, or nil.
func CheckPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("pattern %q: a [ without its ]; write a name, a glob, toolset:NAME or source:KIND", pattern)
	}
	if kind, ok := strings.CutPrefix(pattern, sourcePrefix); ok && !isGlob(kind) && !isSource(kind) {
		return fmt.Errorf("pattern %q: the sources are builtin, plugin, mcp and connectors", pattern)
	}
	return nil
}

func glob(pattern, s string) bool {
	if !isGlob(pattern) {
		return pattern == s
	}
	// path.Match's * stops at a slash; a character that no name holds takes the slash's place.
	const other = "\x00"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", other), strings.ReplaceAll(s, "/", other))
	return ok && err == nil
}

func isGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }

func isSource(s string) bool {
	switch tool.Source(s) {
	case tool.SourceBuiltin, tool.SourcePlugin, tool.SourceMCP, tool.SourceConnectors:
		return true
	}
	return false
}

// ToolsetOf is the toolset that a tool belongs to: the one it declares, else one named after its provider.
func ToolsetOf(d *tool.Definition) string {
	if d.Toolset != "" {
		return d.Toolset
	}
	return d.SourceName
}
