package pluginhost

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// formerKeys makes a key space that still lies in the plugin's own folder, with what is no key beside it.
func formerKeys(t *testing.T, values map[string]string) (k *keySpace, log *strings.Builder) {
	t.Helper()
	dir, log := t.TempDir(), &strings.Builder{}
	k = &keySpace{
		dir: filepath.Join(dir, "keys", "p"), former: filepath.Join(dir, "plugins", "p", "store"),
		logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	if err := os.MkdirAll(k.former, 0o700); err != nil {
		t.Fatal(err)
	}
	for key, value := range values {
		formerFile(t, k, fileOf(key), encodeEntry(key, []byte(value)))
	}
	return k, log
}

func formerFile(t *testing.T, k *keySpace, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(k.former, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (k *keySpace) all(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	a := k.answer(t.Context(), &pb.Store{Operation: pb.Store_OPERATION_LIST})
	if a.GetError() != nil {
		t.Fatal(a.GetError())
	}
	for _, key := range a.GetStore().GetKeys() {
		found[key] = string(k.answer(t.Context(), &pb.Store{Key: key}).GetStore().GetValue())
	}
	return found
}

func TestAFormerKeySpaceIsMovedOnce(t *testing.T) {
	values := map[string]string{"a": "1", "b/c": strings.Repeat("x", maxValue), strings.Repeat("k", maxKey): ""}
	k, _ := formerKeys(t, values)
	if diff := cmp.Diff(values, k.all(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(k.former); !os.IsNotExist(err) {
		t.Errorf("the former folder is still there: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(k.dir)); err != nil || len(left) != 1 {
		t.Errorf("beside the keys: %v, %v", left, err)
	}
	if err := os.MkdirAll(k.former, 0o700); err != nil {
		t.Fatal(err)
	}
	formerFile(t, k, fileOf("a"), encodeEntry("a", []byte("planted later")))
	if diff := cmp.Diff(values, k.all(t)); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}

func TestOfAFormerKeySpaceOnlyValuesAreMoved(t *testing.T) {
	k, log := formerKeys(t, map[string]string{"a": "1"})
	for name, content := range map[string][]byte{
		fileOf("cut"):   {0},
		fileOf("other"): encodeEntry("not other", nil),
		fileOf("big"):   encodeEntry("big", make([]byte, maxValue+maxKey)),
		"notes.txt":     []byte("the plugin's own"),
	} {
		formerFile(t, k, name, content)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, k.all(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left, err := os.ReadDir(k.former); err != nil || len(left) != 4 {
		t.Errorf("left: %v, %v", left, err)
	}
	if n := strings.Count(log.String(), "is left alone"); n != 3 {
		t.Errorf("%d of 3 are told of:\n%s", n, log)
	}
}

func TestAMoveThatIsCutShortBeginsAnew(t *testing.T) {
	values := map[string]string{}
	for n := range 20 {
		values[fmt.Sprint(n)] = "v"
	}
	k, _ := formerKeys(t, values)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if a := k.answer(ended, &pb.Store{Operation: pb.Store_OPERATION_LIST}); a.GetError() == nil {
		t.Errorf("answered %v", a)
	}
	if _, err := os.Lstat(k.dir); !os.IsNotExist(err) {
		t.Errorf("half of the keys: %v", err)
	}
	// A crash leaves the half that it copied.
	if err := os.MkdirAll(k.dir+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir+".new", fileOf("0")), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(values, k.all(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
