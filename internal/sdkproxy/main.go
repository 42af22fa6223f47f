// Command sdkproxy packs this module into a folder that the go command takes as a module proxy, so that plugins can be
// built against it before it is published. `make sdk` runs it at the top of the repository.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	out := flag.String("out", "dist/sdk", "folder of the proxy")
	version := flag.String("version", "v1.0.0-dev."+time.Now().UTC().Format("20060102150405"), "version of the module")
	flag.Parse()
	if err := run(".", *out, *version, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "sdkproxy: %v\n", err)
		os.Exit(1)
	}
}

// run packs the module in dir. Versions that are there already stay: a module's version never changes.
func run(dir, out, version string, said io.Writer) error {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	m := module.Version{Path: modfile.ModulePath(mod), Version: version}
	if err := module.Check(m.Path, m.Version); err != nil {
		return err
	}
	files, err := list(dir)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.Create(&packed, m, files); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC()})
	if err != nil {
		return err
	}
	folder := filepath.Join(out, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, raw := range map[string][]byte{".info": info, ".mod": mod, ".zip": packed.Bytes()} {
		if err := os.WriteFile(filepath.Join(folder, version+name), raw, 0o644); err != nil {
			return err
		}
	}
	if err := addVersion(filepath.Join(folder, "list"), version); err != nil {
		return err
	}
	abs, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(said, `%s %s is in %s. To build plugins against it:

  export GOPROXY="file://%s,$(go env GOPROXY)" GONOSUMDB=%s
`, m.Path, version, out, filepath.ToSlash(abs), m.Path)
	return err
}

func addVersion(path, version string) error {
	known, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(known)) {
		if strings.TrimSpace(line) == version {
			return nil
		}
	}
	return os.WriteFile(path, append(known, version+"\n"...), 0o644)
}

// list names the module's files: those that git knows or would know. What it ignores, such as built programs, is left out.
func list(dir string) ([]zip.File, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	names, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w\n%s", err, &stderr)
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() { // deleted ones are listed until that is committed
			files = append(files, file{name, path})
		}
	}
	return files, nil
}

// file is one file of the module.
type file struct{ name, path string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return os.Lstat(f.path) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.path) }
