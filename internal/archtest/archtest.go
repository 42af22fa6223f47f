// Package archtest holds the table of who may import whom, and the test that enforces it. The table is that of
// docs/design/layers.md; a change of one is a change of both.
package archtest

import "strings"

// module is the path that every package of this repository begins with.
const module = "github.com/hermesd/hermesd"

// layer is one row of the table: packages whose path (below the module) matches from may import those that match to.
// A pattern that ends in "/..." matches the folder and everything below it.
type layer struct {
	from string
	to   []string
}

// table is read from the top; the first row that matches a package decides for it. Packages of the standard library and
// of third parties are not its subject, but for tool, which gets neither (see third).
var table = []layer{
	{"cmd/...", []string{"..."}},
	{"internal/archtest", nil},
	{"internal/codegen/...", []string{"runtime/config", "runtime/tool"}},
	{"internal/integration/...", []string{"..."}},
	{"internal/bench/...", []string{"..."}},
	{"internal/testbin/...", []string{"internal/testbin/...", "internal/testbin", "pluginsdk/...", "runtime/tool"}},
	{"internal/...", []string{"runtime/tool", "internal/..."}},
	{"examples/plugins/...", []string{"pluginsdk"}},
	{"plugins/...", []string{"pluginsdk", "plugins/..."}},
	{"pluginsdk/plugintest/...", []string{"pluginsdk/...", "runtime/tool", "runtime/provider/...", "runtime/pluginhost"}},
	{"pluginsdk/...", []string{"pluginsdk/..."}},

	{"runtime/tool", nil},
	{"runtime/config", []string{"runtime/tool", "internal/procgroup", "internal/redact"}},
	{"runtime/schema", []string{"runtime/tool"}},
	{"runtime/store", []string{"runtime/tool"}},
	{"runtime/telemetry", []string{"runtime/tool"}},
	{"policy/...", []string{"runtime/tool", "policy"}},
	{"search/embed", nil},
	{"search/...", []string{"runtime/tool", "search/..."}},
	{"runtime/provider/...", []string{"runtime/tool", "runtime/provider/..."}},
	{"runtime/pluginhost/...", []string{"runtime/provider/...", "runtime/schema", "runtime/tool", "internal/atomicfile", "internal/procgroup", "internal/confine", "internal/redact", "runtime/pluginhost/...", "pluginsdk/pluginpb"}},
	{"runtime/mcpclient/...", []string{"runtime/provider/...", "runtime/schema", "runtime/tool", "internal/atomicfile", "internal/procgroup", "internal/rawjson", "internal/redact", "runtime/mcpclient/...", "runtime/pluginhost/sandbox"}},
	{"runtime/connector/...", []string{"runtime/provider/...", "runtime/schema", "runtime/tool", "runtime/connector/..."}},
	{"runtime/audit", []string{"runtime/tool", "internal/atomicfile", "internal/redact"}},
	{"hooks/...", []string{"runtime/tool", "internal/atomicfile", "internal/procgroup", "internal/redact", "hooks/..."}},
	{"runtime/results", []string{"runtime/tool", "runtime/provider"}},
	{"runtime/catalog", []string{"runtime/provider", "policy", "runtime/tool"}},
	{"runtime/disclosure", []string{"runtime/catalog", "policy", "runtime/tool"}},
	{"runtime/pipeline", []string{"runtime/schema", "runtime/tool", "runtime/provider", "internal/redact"}},
	{"runtime/bridge", []string{"internal/rawjson", "runtime/catalog", "runtime/pipeline", "search", "runtime/tool", "runtime/provider"}},
	{"runtime/frontend/frontendtest", []string{"runtime/...", "policy", "search"}},
	{"runtime/frontend/...", []string{"internal/procgroup", "internal/rawjson", "internal/redact", "runtime/bridge", "runtime/disclosure", "runtime/catalog", "runtime/pipeline", "runtime/provider", "runtime/schema", "runtime/provider/providerlog", "runtime/tool", "runtime/frontend/..."}},
	{"runtime/daemon/...", []string{"runtime/...", "policy/...", "search/...", "hooks/...", "internal/redact", "internal/procgroup"}},
}

// allowed reports whether a package may import another, both given by their path below the module, and whether any row
// speaks of the importing one.
func allowed(from, to string) (ok, known bool) {
	for _, row := range table {
		if !matches(row.from, from) {
			continue
		}
		for _, pattern := range row.to {
			if matches(pattern, to) {
				return true, true
			}
		}
		return false, true
	}
	return false, false
}

func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == folder || strings.HasPrefix(path, folder+"/")
	}
	return path == pattern
}
