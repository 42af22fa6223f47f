package store_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/pluginhost/store"
)

type file struct {
	name, content string
	kind          byte // 0: a file
}

func sum(content string) string {
	d := sha256.Sum256([]byte(content))
	return hex.EncodeToString(d[:])
}

// pack writes a bundle.
func pack(t testing.TB, files ...file) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	out := tar.NewWriter(zipped)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		if f.kind != 0 {
			head.Typeflag, head.Size, head.Linkname = f.kind, 0, f.content
		}
		if err := out.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if f.kind == 0 {
			if _, err := out.Write([]byte(f.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []interface{ Close() error }{out, zipped} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func manifest(t testing.TB, version string, binaries ...store.Binary) file {
	t.Helper()
	content, err := json.Marshal(store.Manifest{Name: "notes", Version: version, Binaries: binaries})
	if err != nil {
		t.Fatal(err)
	}
	return file{name: store.ManifestName, content: string(content)}
}

func here(path, content string) store.Binary {
	return store.Binary{OS: runtime.GOOS, Arch: runtime.GOARCH, Path: path, SHA256: sum(content)}
}

func TestInstallPinRollBackVerify(t *testing.T) {
	dir := t.TempDir()
	s := store.OpenInstalled(dir)
	first := pack(t, manifest(t, "1.0", store.Binary{OS: "plan9", Arch: "mips", Path: "other", SHA256: one}, here("bin/notes", "v1")),
		file{name: "README", content: "hello"}, file{name: "bin", kind: tar.TypeDir}, file{name: "bin/notes", content: "v1"})
	p, err := s.Install(first, store.InstallOptions{})
	if err != nil || p.Name != "notes" || p.Release().Version != "1.0" || p.Release().SHA256 != sum("v1") {
		t.Fatalf("installed %+v, %v", p, err)
	}
	path, r, err := s.Find("notes")
	if err != nil || r.SHA256 != sum("v1") {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := s.Install(first, store.InstallOptions{}); err != nil {
		t.Errorf("the same again: %v", err)
	}

	bare := filepath.Join(t.TempDir(), "Notes.bin")
	if err := os.WriteFile(bare, []byte("v2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pin("notes", true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(bare, store.InstallOptions{}); err == nil || !strings.Contains(err.Error(), "pin --off notes") {
		t.Errorf("over a pinned release: %v", err)
	}
	if _, err := s.Pin("notes", false); err != nil {
		t.Fatal(err)
	}
	if p, err = s.Install(bare, store.InstallOptions{}); err != nil || p.Release().SHA256 != sum("v2") || len(p.Releases) != 2 {
		t.Fatalf("installed %+v, %v", p, err)
	}
	if p, err = s.Rollback("notes"); err != nil || p.Release().SHA256 != sum("v1") {
		t.Errorf("rolled back to %+v, %v", p, err)
	}
	if _, err = s.Rollback("notes"); err == nil {
		t.Error("rolled back beyond the first release")
	}

	if v, err := s.Verify(""); err != nil || len(v) != 1 || v[0].Fault != "" {
		t.Errorf("verified %+v, %v", v, err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("tampered"), 0o700); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify("notes"); err != nil || !strings.Contains(v[0].Fault, "was changed") {
		t.Errorf("verified %+v, %v", v, err)
	}
	if _, err := s.Verify("nobody"); err == nil || !strings.Contains(err.Error(), "hermesd plugin install") {
		t.Errorf("unknown: %v", err)
	}
}

func TestOldReleasesGo(t *testing.T) {
	dir := t.TempDir()
	s := store.OpenInstalled(dir)
	for n := range 8 {
		content := fmt.Sprint("v", n)
		if _, err := s.Install(pack(t, manifest(t, content, here("notes", content)), file{name: "notes", content: content}), store.InstallOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, "sha256"))
	if err != nil || len(left) != 5 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

func TestABadBundleIsRefusedAndLeavesNothing(t *testing.T) {
	bin := file{name: "notes", content: "v1"}
	good := manifest(t, "1", here("notes", "v1"))
	many := []file{good}
	for n := range 300 {
		many = append(many, file{name: fmt.Sprint("f", n)})
	}
	tests := map[string]struct {
		files []file
		want  string
	}{
		"no manifest first":            {[]file{bin, good}, "first entry must be plugin.json"},
		"a manifest that is no JSON":   {[]file{{name: "plugin.json", content: "{"}}, "unexpected EOF"},
		"an unknown key":               {[]file{{name: "plugin.json", content: `{"name":"x","run":"rm"}`}}, "unknown field"},
		"a bad name":                   {[]file{{name: "plugin.json", content: `{"name":"../x","binaries":[]}`}}, "want 1 to 32"},
		"a manifest that is too long":  {[]file{{name: "plugin.json", content: strings.Repeat(" ", 70_000)}}, "at most 65536 bytes"},
		"another machine":              {[]file{manifest(t, "1", store.Binary{OS: "plan9", Arch: "mips", Path: "notes", SHA256: one})}, "no binary for"},
		"a wrong digest":               {[]file{manifest(t, "1", here("notes", "v2")), bin}, "tampered with"},
		"no binary":                    {[]file{good}, "it has no notes"},
		"two binaries of one name":     {[]file{good, bin, bin}, "two entries"},
		"a path that leads out":        {[]file{good, {name: "../notes", content: "v1"}}, "leads out"},
		"an absolute path":             {[]file{good, {name: "/notes", content: "v1"}}, "leads out"},
		"a roundabout path":            {[]file{good, {name: "a/../notes", content: "v1"}}, "roundabout"},
		"a link":                       {[]file{good, {name: "notes", content: "/etc/passwd", kind: tar.TypeSymlink}}, "neither a file nor a folder"},
		"a device":                     {[]file{good, {name: "notes", kind: tar.TypeChar}}, "neither a file nor a folder"},
		"too many entries":             {many, "more than 256 entries"},
		"an empty binary":              {[]file{manifest(t, "1", here("notes", "")), {name: "notes"}}, "empty"},
		"a binary path that leads out": {[]file{manifest(t, "1", here("../notes", "v1"))}, "a path within the bundle"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := store.OpenInstalled(dir).Install(pack(t, tt.files...), store.InstallOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if left, err := os.ReadDir(filepath.Join(dir, "sha256")); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestADamagedIndexIsAnErrorThatSaysWhatToDo(t *testing.T) {
	for _, content := range []string{"{", `{"format":2}`, `{"format":1,"plugins":{"x":{"name":"x","releases":[],"current":0}}}`, `{"format":1,"plugins":{"x":{"name":"x","releases":[{"sha256":"../../x"}]}}}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "installed.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.OpenInstalled(dir).Find("x"); err == nil || !strings.Contains(err.Error(), "install the plugins again") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func FuzzInstall(f *testing.F) {
	for _, path := range []string{
		pack(f, manifest(f, "1", here("notes", "v1")), file{name: "notes", content: "v1"}),
		pack(f, manifest(f, "1", here("../x", "v1")), file{name: "../x", content: "v1"}),
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		root := t.TempDir()
		source := filepath.Join(root, "source")
		if err := os.WriteFile(source, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := store.OpenInstalled(filepath.Join(root, "store")).Install(source, store.InstallOptions{}); err == nil && p.Release().SHA256 == "" {
			t.Error("installed without a digest")
		}
		if outside, err := os.ReadDir(root); err != nil || len(outside) > 2 {
			t.Errorf("written outside the store: %v, %v", outside, err)
		}
	})
}
