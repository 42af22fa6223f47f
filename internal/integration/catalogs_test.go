package integration

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/internal/bench/bars"
	"github.com/hermesd/hermesd/internal/testenv"
)

// Real catalogs, served by the catalog plugin: one giant source and a hundred tools from small ones.
func TestRealCatalogsInTheirTiers(t *testing.T) {
	data := testenv.Data(t)
	const giant, small = 3300, 10
	blocks := "tools {\n  tool_search {\n    enabled = \"on\"\n  }\n}\n"
	blocks += fmt.Sprintf("plugin \"giant\" {\n  path = %q\n  config {\n    file  = %q\n    limit = %d\n  }\n}\n", plugin("catalog"), filepath.Join(data, "msgraph", "catalog.jsonl.gz"), giant)
	sources := smallSources(t, filepath.Join(data, "mcptools", "catalog.jsonl.gz"), small)
	for i, source := range sources {
		blocks += fmt.Sprintf("plugin \"small%d\" {\n  path   = %q\n  prefix = true\n  config {\n    file   = %q\n    source = [%q]\n  }\n}\n",
			i, plugin("catalog"), filepath.Join(data, "mcptools", "catalog.jsonl.gz"), source)
	}
	d := start(t, blocks)
	type entry struct {
		Name     string `json:"name"`
		Source   string `json:"source_name"`
		Deferred bool   `json:"deferred"`
	}
	var tools []entry
	counts := map[string]int{}
	eventually(t, "all catalogs are there", func() bool {
		out, _, code := d.hermesd("tool", "list", "--all", "--json")
		if code != 0 || json.Unmarshal([]byte(out), &tools) != nil {
			return false
		}
		clear(counts)
		for _, x := range tools {
			if x.Source == "giant" || strings.HasPrefix(x.Source, "small") {
				counts[x.Source]++
			}
		}
		return counts["giant"] >= giant-10 && len(counts) >= small+1
	})
	s := d.connect(nil)
	first := listed(t, s)
	if tokens := len([]rune(first)) / 4; tokens >= 4000 {
		t.Errorf("the definitions take %d tokens", tokens)
	} else {
		t.Logf("the definitions of %d tools take %d tokens", len(tools), tokens)
	}
	for range 9 {
		if listed(t, s) != first {
			t.Fatal("the same catalog gave other bytes")
		}
	}
	for _, x := range tools {
		if !strings.HasPrefix(x.Source, "small") {
			continue
		}
		if !strings.Contains(first, x.Name) {
			t.Errorf("the listing lacks %s of the small source %s", x.Name, x.Source)
		}
	}
	if !strings.Contains(first, fmt.Sprintf("giant (%d tools)", counts["giant"])) {
		t.Error("the giant's line with its count is missing")
	}
	// A tool that no list shows is found and runs.
	text, isError := call(t, s, "tool_search", map[string]any{"queries": []string{"send a mail message"}})
	var answer struct {
		Results []struct{ Matches []string }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || isError || len(answer.Results[0].Matches) == 0 {
		t.Fatalf("search: %v %s", err, text)
	}
	// The bar as it stands, but once the daemon has come to rest: what is garbage just after a start depends on how busy the
	// machine is. `make bars` has the peak.
	t.Logf("the daemon takes %d million bytes", resident(t, d.cmd.Process.Pid)/1e6)
	eventually(t, "the daemon's memory is within the bar", func() bool {
		rss := float64(resident(t, d.cmd.Process.Pid)) / 1e6
		return len((bars.Readings{{Benchmark: bars.Giant + "/memory", Unit: "MB"}: rss}).Missed()) == 0
	})
}

// listed are the definitions that an agent sees, as JSON.
func listed(t *testing.T, s *sdk.ClientSession) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := s.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.Tools)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// resident is the resident memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("there is no /proc here")
	}
	var size, pages int
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// smallSources names n sources of a catalog that have about ten tools each.
func smallSources(t *testing.T, path string, n int) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	var order []string
	for d := json.NewDecoder(z); d.More(); {
		var line struct{ Source string }
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if counts[line.Source]++; counts[line.Source] == 1 {
			order = append(order, line.Source)
		}
	}
	var list []string
	for _, source := range order {
		if counts[source] >= 8 && counts[source] <= 12 && len(list) < n {
			list = append(list, source)
		}
	}
	return list
}
