package disclosure_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/internal/testenv"
	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestDeferringSavesAtLeastEightyFivePercent(t *testing.T) {
	for name, sizes := range map[string][]int{
		"five servers with 34 tools": {34, 34, 34, 34, 34}, "of different sizes": {34, 40, 60, 90, 120}, "with 200": {200, 200, 200, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*fake
			for i, n := range sizes {
				servers = append(servers, server(fmt.Sprintf("server%d", i), n))
			}
			all := len(encode(t, assemble(catalogOf(servers...), disclosure.Settings{Enabled: disclosure.Off})))
			shown := len(encode(t, assemble(catalogOf(servers...), disclosure.Settings{Enabled: disclosure.On})))
			saved := 100 - 100*float64(shown)/float64(all)
			t.Logf("%d of %d bytes shown: %.1f%% saved", shown, all, saved)
			if saved < 85 {
				t.Errorf("%.1f%% saved", saved)
			}
		})
	}
}

func TestAGiantSourceLeavesSmallOnesTheirFullList(t *testing.T) {
	providers := []*fake{server("giant", 3300)}
	for i := range 10 {
		providers = append(providers, server(fmt.Sprintf("small%d", i), 10))
	}
	checkGiant(t, providers)
}

// The same with real tools: one server of 3,300 (Kubernetes, GitHub, Cloudflare), 100 tools of real small ones.
func TestAGiantSourceOfRealToolsLeavesSmallOnesTheirFullList(t *testing.T) {
	root := testenv.Data(t)
	var giant []tool.Definition
	seen := map[string]bool{}
	for _, set := range []string{"kubernetes-1.13", "github-rest", "cloudflare"} {
		for _, r := range readCatalog(t, root, set) {
			if d := r.definition(); !seen[d.OwnName] && len(giant) < 3300 {
				seen[d.OwnName] = true
				giant = append(giant, d)
			}
		}
	}
	providers := []*fake{offering(tool.SourceMCP, "giant", giant...)}
	small, count := map[string][]tool.Definition{}, 0
	for _, r := range readCatalog(t, root, "npm-servers") {
		if count < 100 && len(small[r.Source]) < 10 {
			small[r.Source] = append(small[r.Source], r.definition())
			count++
		}
	}
	for label, tools := range small {
		providers = append(providers, offering(tool.SourceMCP, label, tools...))
	}
	checkGiant(t, providers)
}

func checkGiant(t *testing.T, providers []*fake) {
	t.Helper()
	settings := disclosure.Settings{Enabled: disclosure.On}
	c := catalogOf(providers...)
	a := assemble(c, settings)
	text := encode(t, a)
	t.Logf("definitions %d tokens, listing %d, all definitions %d", disclosure.Tokens(text), disclosure.Tokens(a.Listing), a.Stats.AllTokens)
	if n := disclosure.Tokens(text); n >= 4000 {
		t.Errorf("the definitions take %d tokens", n)
	}
	if a.Tier != disclosure.TierSources || !regexp.MustCompile(`(?m)^giant \(\d+ tools\)$`).MatchString(a.Listing) {
		t.Errorf("tier %d, and the giant is not merely counted:\n%s", a.Tier, a.Listing)
	}
	for _, e := range a.View.Listed() {
		if e.Identity().Name == "giant" {
			continue
		}
		line := "- " + e.Definition.Name
		if s := e.Summary(60); s != "" {
			line += ": " + s
		}
		if !strings.Contains(a.Listing, line+"\n") {
			t.Errorf("a small source's line is missing: %s", line)
		}
	}
	for range 10 {
		if got := encode(t, assemble(c, settings)); got != text {
			t.Fatal("assembled again, the bytes differ")
		}
	}
}

type row struct {
	Name, Description, Source string
	Parameters                json.RawMessage
}

func (r row) definition() tool.Definition {
	return tool.Definition{Name: r.Name, OwnName: strings.TrimPrefix(r.Name, r.Source+"__"), Description: r.Description, InputSchema: r.Parameters}
}

func readCatalog(t *testing.T, root, set string) []row {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, set, "catalog.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		f, openErr := os.Open(filepath.Join(root, set, "catalog.jsonl.gz"))
		if openErr != nil {
			t.Fatal(openErr)
		}
		defer f.Close()
		z, zipErr := gzip.NewReader(f)
		if zipErr != nil {
			t.Fatal(zipErr)
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(z)
		raw = b.Bytes()
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTheListingNeverExceedsItsBudget(t *testing.T) {
	label := rapid.StringMatching(`[a-z]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		var providers []*fake
		counts := map[string]int{}
		for _, name := range rapid.SliceOfNDistinct(label, 1, 12, rapid.ID[string]).Draw(t, "labels") {
			n := rapid.IntRange(1, 40).Draw(t, "tools")
			counts[name] = n
			providers = append(providers, server(name, n))
		}
		s := disclosure.Settings{
			Enabled:          disclosure.On,
			Listing:          rapid.SampledFrom([]string{disclosure.Auto, disclosure.On, disclosure.Off}).Draw(t, "listing"),
			ListingMaxTokens: rapid.IntRange(1, 3000).Draw(t, "max"),
			ListingPct:       new(rapid.Float64Range(0, 10).Draw(t, "pct")),
			ContextLength:    rapid.IntRange(1000, 50_000).Draw(t, "context"),
		}
		a := assemble(catalogOf(providers...), s)
		budget := s.ListingMaxTokens
		if s.Listing != disclosure.On {
			budget = min(budget, int(*s.ListingPct/100*float64(s.ContextLength)))
		}
		if got := disclosure.Tokens(a.Listing); got > budget {
			t.Fatalf("%d tokens in a budget of %d:\n%s", got, budget, a.Listing)
		}
		checkLevels(t, a, counts)
	})
}

// checkLevels verifies that no source tells more than a smaller one, and that tier and listing agree.
func checkLevels(t *rapid.T, a *disclosure.Assembly, counts map[string]int) {
	levels := map[string]int{}
	for label, n := range counts {
		head := fmt.Sprintf("\n%s (%d tool", label, n)
		i := strings.Index(a.Listing, head)
		if i < 0 {
			continue
		}
		line, _, _ := strings.Cut(a.Listing[i+1:], "\n")
		switch {
		case strings.HasSuffix(line, ":"):
			levels[label] = 2
		case strings.Contains(line, ": "):
			levels[label] = 1
		}
	}
	named := len(levels) == len(counts)
	if named != (a.Tier == disclosure.TierNames) {
		t.Fatalf("tier %d with %d of %d sources named", a.Tier, len(levels), len(counts))
	}
	for big, n := range counts {
		for small, m := range counts {
			if m < n && levels[big] > levels[small] {
				t.Fatalf("%s with %d tools tells more than %s with %d:\n%s", big, n, small, m, a.Listing)
			}
		}
	}
	if !utf8.ValidString(a.Listing) {
		t.Fatal("the listing is no valid UTF-8")
	}
}

func TestWhateverProvidersDoTheBytesStay(t *testing.T) {
	states := []provider.State{provider.Installed, provider.Starting, provider.Ready, provider.Draining, provider.Backoff, provider.Quarantined, provider.Stopped}
	rapid.Check(t, func(t *rapid.T) {
		providers := []*fake{files(), server("kb", 12), server("tracker", 3)}
		c := catalogOf(providers...)
		d := disclosure.New(c)
		agent := &disclosure.Agent{Settings: disclosure.Settings{
			Enabled:       rapid.SampledFrom([]string{disclosure.Auto, disclosure.On, disclosure.Off}).Draw(t, "enabled"),
			Listing:       rapid.SampledFrom([]string{disclosure.Auto, disclosure.On, disclosure.Off}).Draw(t, "listing"),
			ContextLength: rapid.IntRange(1000, 50_000).Draw(t, "context"),
		}}
		want := d.For(agent).Digest
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			p := rapid.SampledFrom(providers).Draw(t, "provider")
			p.status(rapid.SampledFrom(states).Draw(t, "state"))
			if rapid.Bool().Draw(t, "lists its tools again") {
				next := *p.offer.Load()
				next.Tools = slices.Clone(next.Tools)
				p.offer.Store(&next)
			}
			c.Refresh()
			if got := d.For(agent).Digest; got != want {
				t.Fatalf("the bytes changed: %v", names(d.For(agent).Tools))
			}
		}
	})
}
