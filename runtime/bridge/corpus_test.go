package bridge_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hermesd/hermesd/runtime/bridge"
	"github.com/hermesd/hermesd/runtime/tool"
)

var update = flag.Bool("update", false, "write the answers of the conversations in testdata anew")

// TestConversations plays every file of testdata. Its head names the faults that it guards. The file "caller" holds the
// caller's settings; a file "N KIND" is what the agent sends to the search, describe or call tool, or to "direct NAME";
// "N answer" is what it reads, and "N ran" what reached a provider, if anything did.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Error("the head does not say what the conversation guards")
			}
			got := play(t, archive)
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); d != "" && !*update {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func play(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	t.Helper()
	w := newWorld(t)
	var s settings
	got := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		number, kind, _ := strings.Cut(f.Name, " ")
		switch {
		case f.Name == "caller":
			if err := json.Unmarshal(f.Data, &s); err != nil {
				t.Fatal(err)
			}
			got.Files = append(got.Files, f)
			continue
		case kind == "answer" || kind == "ran":
			continue
		}
		w.ran = nil
		result, err := send(t, w, w.caller(t, s), kind, bytes.TrimSuffix(f.Data, []byte("\n")))
		got.Files = append(got.Files, f, txtar.File{Name: number + " answer", Data: []byte(show(result, err))})
		if len(w.ran) > 0 {
			slices.Sort(w.ran) // parallel_safe entries run in any order
			got.Files = append(got.Files, txtar.File{Name: number + " ran", Data: []byte(strings.Join(w.ran, "\n") + "\n")})
		}
	}
	return got
}

func send(t *testing.T, w *world, c *bridge.Caller, kind string, args json.RawMessage) (*tool.Result, error) {
	t.Helper()
	switch kind, name, _ := strings.Cut(kind, " "); kind {
	case "search":
		return w.bridge.Search(t.Context(), c, args)
	case "describe":
		return w.bridge.Describe(t.Context(), c, args)
	case "call":
		return w.bridge.Call(t.Context(), c, args)
	case "direct":
		return w.bridge.Direct(t.Context(), c, name, args)
	default:
		t.Fatalf("a conversation has no %q", kind)
		return nil, nil
	}
}

// show is what an agent reads: one line a content block, and a line for everything else.
func show(result *tool.Result, err error) string {
	var b strings.Builder
	if err != nil {
		result = tool.AsError(err).Result()
		fmt.Fprintf(&b, "error ")
	} else if result.IsError {
		fmt.Fprintf(&b, "failed ")
	}
	for _, c := range result.Content {
		if text, ok := c.AsText(); ok {
			fmt.Fprintf(&b, "%s\n", text)
		} else {
			fmt.Fprintf(&b, "block %s\n", c)
		}
	}
	if result.Structured != nil && len(result.Content) > 0 {
		if text, _ := result.Content[0].AsText(); text != string(result.Structured) {
			fmt.Fprintf(&b, "structured %s\n", result.Structured)
		}
	}
	if result.Meta != nil {
		fmt.Fprintf(&b, "_meta %s\n", result.Meta)
	}
	return b.String()
}
