package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/runtime/pluginhost/store"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	one = "1111111111111111111111111111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222222222222222222222222222"
)

func def(name, description string) tool.Definition {
	return tool.Definition{
		Name: "p__" + name, OwnName: name, Description: description,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
	}
}

func keeper(dir string) (*store.Lock, *store.Keeper) {
	l := store.OpenLock(dir, nil)
	return l, l.For(store.KeeperOptions{Name: "p", Kind: "plugin"})
}

func wantTools(t *testing.T, k *store.Keeper, tools []tool.Definition, refused ...string) {
	t.Helper()
	got := map[string]bool{}
	for name := range k.Tools(tools) {
		got[name] = true
	}
	want := map[string]bool{}
	for _, name := range refused {
		want[name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestWhatIsSeenFirstIsTrustedAndWhatChangesIsNot(t *testing.T) {
	dir := t.TempDir()
	l, k := keeper(dir)
	if err := k.Binary(one); err != nil {
		t.Fatal(err)
	}
	wantTools(t, k, []tool.Definition{def("a", "first"), def("b", "second")})
	l.Flush()

	// The next run of the daemon.
	l, k = keeper(dir)
	if err := k.Binary(two); err == nil || !strings.Contains(err.Error(), "hermesd plugin lock p") {
		t.Errorf("a changed binary: %v", err)
	}
	wantTools(t, k, []tool.Definition{def("a", "first"), def("b", "changed"), def("c", "new")}, "p__b")
	l.Flush()
	if strings.Contains(read(t, dir, store.LockName), two) {
		t.Error("the refused binary is in the lock file")
	}

	// The operator looks and accepts.
	want := []store.Change{
		{Provider: "p", Before: one, After: two},
		{Provider: "p", Tool: "b", Differences: []store.Difference{{Field: "description", Before: `"second"`, After: `"changed"`}}},
	}
	opts := cmp.FilterPath(func(p cmp.Path) bool {
		s := p.String()
		return strings.HasSuffix(s, "After") || strings.HasSuffix(s, "Before")
	}, cmp.Comparer(func(a, b string) bool { return a == b || len(a) == 64 || len(b) == 64 }))
	changes, err := store.Waiting(dir, "p")
	if diff := cmp.Diff(want, changes, opts); diff != "" || err != nil {
		t.Errorf("waiting: %v (-want +got):\n%s", err, diff)
	}
	if accepted, err := store.Accept(dir, "p"); err != nil || len(accepted) != 2 {
		t.Errorf("accepted %+v, %v", accepted, err)
	}
	if changes, err := store.Waiting(dir, ""); err != nil || changes != nil {
		t.Errorf("still waiting: %+v, %v", changes, err)
	}
	_, k = keeper(dir)
	if err := k.Binary(two); err != nil {
		t.Error(err)
	}
	wantTools(t, k, []tool.Definition{def("b", "changed")})
	if err := k.Binary(one); err == nil {
		t.Error("the old binary is trusted, too")
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A provider that lists other tools every time must not grow the lock file until nobody can read it.
func TestWhatIsRememberedOfAProviderIsBounded(t *testing.T) {
	dir := t.TempDir()
	l, k := keeper(dir)
	l.Bound(200, 1<<20)
	first := []tool.Definition{def("first", "x")}
	wantTools(t, k, first)
	many := func(round, n int) (list []tool.Definition) {
		for i := range n {
			list = append(list, def(fmt.Sprintf("t%d_%d", round, i), "x"))
		}
		return list
	}
	for round := range 2 {
		k.Tools(many(round, 100))
	}
	refused := k.Tools(append(many(2, 3), first...))
	if len(refused) != 3 || !strings.Contains(refused["p__t2_0"], "more different tools") {
		t.Errorf("refused: %v", refused)
	}
	wantTools(t, k, []tool.Definition{def("first", "changed")}, "p__first") // nothing is forgotten for it
	l.Flush()
	if _, k = keeper(dir); len(k.Inspect().Waiting) != 1 || k.Inspect().Damaged != "" {
		t.Errorf("after a restart: %+v", k.Inspect())
	}

	// Few tools of many bytes, the changed ones counted.
	l, k = keeper(t.TempDir())
	l.Bound(200, 1<<20)
	text, kept := strings.Repeat("x", 200<<10), 0
	for n := range 8 {
		kept += 1 - len(k.Tools([]tool.Definition{def(fmt.Sprint("big", n), text)}))
	}
	if kept != 5 {
		t.Errorf("%d definitions of 200 KiB are remembered in 1 MiB", kept)
	}
	for n := range kept {
		wantTools(t, k, []tool.Definition{def(fmt.Sprint("big", n), "changed"+text)}, fmt.Sprint("p__big", n))
	}
	if waiting := k.Inspect().Waiting; len(waiting) != 0 {
		t.Errorf("%d changed definitions are kept beyond the bound", len(waiting))
	}
}

func TestNothingButAChangeIsAChange(t *testing.T) {
	base := []tool.Definition{def("a", "first"), def("b", "second")}
	reordered := def("a", "first")
	reordered.InputSchema = json.RawMessage("{ \"properties\": {\"path\" :{\"type\":\"string\"} },\n \"type\":\"object\"}")
	prefixed := def("a", "first")
	prefixed.Name = "other__a"
	tests := map[string][][]tool.Definition{
		"a partial list, then all":        {base[:1], base},
		"an empty list, then all":         {nil, base},
		"another order":                   {{base[1], base[0]}},
		"another layout of the schema":    {{reordered, base[1]}},
		"another prefix of the operator":  {{prefixed, base[1]}},
		"the same again, and once more":   {base, base},
		"a tool that comes, goes, comes":  {append(base[:2:2], def("c", "x")), base, append(base[:2:2], def("c", "x"))},
		"metadata that nobody reads":      {{func() tool.Definition { d := def("a", "first"); d.Meta = json.RawMessage(`{"n":1}`); return d }()}},
		"a slow server that lists nobody": {{}, {}, base},
	}
	for name, lists := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, k := keeper(dir)
			wantTools(t, k, base)
			for n, list := range lists {
				if n == 1 { // half way the daemon starts anew
					l.Flush()
					l, k = keeper(dir)
				}
				wantTools(t, k, list)
			}
		})
	}
}

func TestDiscoveriesAtOnceTrustTheSame(t *testing.T) {
	dir := t.TempDir()
	l := store.OpenLock(dir, nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	var wg sync.WaitGroup
	for p := range 40 {
		k := l.For(store.KeeperOptions{Name: fmt.Sprintf("p%d", p), Kind: "mcp"})
		for range 2 {
			wg.Go(func() {
				if err := k.Binary(one); err != nil {
					t.Error(err)
				}
				for n := range 5 {
					if refused := k.Tools([]tool.Definition{def("a", "first"), def("b", "second")}[:1+n%2]); len(refused) > 0 {
						t.Errorf("refused: %v", refused)
					}
				}
			})
		}
	}
	wg.Wait()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(read(t, dir, store.LockName), "provider \""); n != 40 {
		t.Errorf("%d providers are in the lock file", n)
	}
}

func TestAShippedPluginChangesWithHermesd(t *testing.T) {
	dir := t.TempDir()
	for _, digest := range []string{one, two} {
		l := store.OpenLock(dir, nil)
		k := l.For(store.KeeperOptions{Name: "files", Kind: "plugin", Shipped: true})
		if err := k.Binary(digest); err != nil {
			t.Fatal(err)
		}
		wantTools(t, k, []tool.Definition{def("a", "in "+digest)})
		l.Flush()
	}
	if text := read(t, dir, store.LockName); !strings.Contains(text, two) || strings.Contains(text, one) {
		t.Errorf("lock file:\n%s", text)
	}
}

func TestARunningDaemonHearsOfTheOperatorsWord(t *testing.T) {
	dir := t.TempDir()
	l, k := keeper(dir)
	wantTools(t, k, []tool.Definition{def("a", "first")})
	l.Flush()
	l = store.OpenLock(dir, nil)
	heard := make(chan struct{}, 1)
	k = l.For(store.KeeperOptions{Name: "p", Kind: "plugin", OnChange: func() { heard <- struct{}{} }})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	wantTools(t, k, []tool.Definition{def("a", "changed")}, "p__a")
	deadline := time.After(5 * time.Second)
	for {
		accepted, err := store.Accept(dir, "p")
		if err != nil {
			t.Fatal(err)
		}
		if len(accepted) == 1 {
			break
		}
		select { // Run has not written yet what waits
		case <-deadline:
			t.Fatal("nothing waits for the operator")
		case <-time.After(time.Millisecond):
		}
	}
	select {
	case <-heard:
	case <-deadline:
		t.Fatal("the daemon does not hear of it")
	}
	wantTools(t, k, []tool.Definition{def("a", "changed")})
}

func TestADamagedLockFileTrustsNobodyThatItMaySpeakOf(t *testing.T) {
	write := func(t *testing.T, dir, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, store.LockName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := fmt.Sprintf("provider \"q\" {\n  kind = \"mcp\"\n  binary = %q\n  accepted = \"2026-01-02T03:04:05Z\"\n  tools = {}\n}\n", one)
	t.Run("as a whole", func(t *testing.T) {
		for name, content := range map[string]string{
			"no HCL": "format = 1\nprovider {{{", "no format": good, "another format": "format = 2\n", "half": "format = 1\n" + good[:40],
		} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				write(t, dir, content)
				l, k := keeper(dir)
				if err := k.Binary(one); err == nil || !strings.Contains(err.Error(), "damaged") {
					t.Errorf("a plugin: %v", err)
				}
				wantTools(t, k, []tool.Definition{def("a", "")}, "p__a")
				if err := l.For(store.KeeperOptions{Name: "files", Shipped: true}).Binary(one); err != nil {
					t.Errorf("a shipped plugin: %v", err)
				}
				l.Flush()
				if got := read(t, dir, store.LockName); got != content {
					t.Errorf("it was written over:\n%s", got)
				}
				if _, err := store.Accept(dir, "p"); err == nil || !strings.Contains(err.Error(), "restore it") {
					t.Errorf("accept: %v", err)
				}
			})
		}
	})
	t.Run("in one entry", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "format = 1\n"+good+"provider \"p\" {\n  binary = \"short\"\n}\n")
		l, k := keeper(dir)
		if err := k.Binary(one); err == nil || !strings.Contains(err.Error(), `"short" is no SHA-256`) {
			t.Errorf("its provider: %v", err)
		}
		wantTools(t, k, []tool.Definition{def("a", "")}, "p__a")
		q := l.For(store.KeeperOptions{Name: "q", Kind: "mcp"})
		if err := q.Binary(one); err != nil {
			t.Errorf("another provider: %v", err)
		}
		wantTools(t, q, []tool.Definition{def("new", "")})
		l.Flush()
		l, k = keeper(dir)
		if err := k.Binary(one); err == nil {
			t.Error("its provider is trusted after another's entry was written")
		}
		if !strings.Contains(read(t, dir, store.LockName+".damaged"), `"short"`) {
			t.Error("no copy of the damaged file was kept")
		}
		l.Flush()
		if changes, err := store.Accept(dir, "p"); err != nil || len(changes) != 2 {
			t.Fatalf("accept: %+v, %v", changes, err)
		}
		_, k = keeper(dir)
		if err := k.Binary(one); err != nil {
			t.Error(err)
		}
		wantTools(t, k, []tool.Definition{def("a", "")})
	})
}

func TestARecordThatIsGoneCostsTheDifferenceOnly(t *testing.T) {
	dir := t.TempDir()
	l, k := keeper(dir)
	wantTools(t, k, []tool.Definition{def("a", "first")})
	l.Flush()
	if err := os.WriteFile(filepath.Join(dir, "p.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, k = keeper(dir)
	wantTools(t, k, []tool.Definition{def("a", "changed")}, "p__a")
	l.Flush()
	changes, err := store.Waiting(dir, "p")
	if err != nil || len(changes) != 1 || changes[0].Differences != nil {
		t.Errorf("waiting %+v, %v", changes, err)
	}
}

// The file is parsed again only when it has changed; a file that was emptied is not one that was never there.
func TestALockFileThatIsEmptiedIsDamaged(t *testing.T) {
	dir := t.TempDir()
	l, k := keeper(dir)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	if refused := k.Tools([]tool.Definition{def("a", "first")}); len(refused) > 0 {
		t.Fatal(refused)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.LockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Flush()
	again := store.OpenLock(dir, nil).For(store.KeeperOptions{Name: "p", Kind: "plugin"})
	if refused := again.Tools([]tool.Definition{def("a", "first")}); len(refused) != 1 {
		t.Errorf("refused: %v", refused)
	}
	if raw := read(t, dir, store.LockName); raw != "" {
		t.Errorf("what a human must look at was written over:\n%s", raw)
	}
}
