package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/pluginsdk/plugintest/conformance"
	"github.com/hermesd/hermesd/runtime/config"
)

// Everything in docs/plugin-authors that is code is run by this file, block by block, in an empty folder outside the
// repository. The word after the language says how:
//
//	sh             commands; they must succeed
//	sh background  a program that runs until the page's end
//	sh retry       commands that are repeated until they print what the text block after them says
//	text           lines that the commands before it print, in this order; "…" stands for anything
//	go file=NAME   a file that is written; later commands build it
//	hcl file=NAME  a file that is written, and valid
//	json           a valid value
//	js, proto      an excerpt of examples/plugins/node, or of plugin.proto

// codeBlock is one fenced block of a page.
type codeBlock struct {
	language, mode, file string
	text                 string
	line                 int
}

func codeBlocks(t *testing.T, page string) []codeBlock {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var (
		list []codeBlock
		open *codeBlock
	)
	for i, line := range strings.Split(string(raw), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			words := strings.Fields(info)
			if len(words) == 0 {
				t.Fatalf("%s:%d: the block has no language", page, i+1)
			}
			open = &codeBlock{language: words[0], line: i + 1}
			for _, word := range words[1:] {
				if name, ok := strings.CutPrefix(word, "file="); ok {
					open.file = name
				} else {
					open.mode = word
				}
			}
		case fence:
			list = append(list, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", page, open.line)
	}
	return list
}

// reader is somebody who follows a page to the letter.
type reader struct {
	t          *testing.T
	page       string
	dir        string // where the next commands run
	env        []string
	printed    func() string // what the last commands have printed so far
	background bool          // they still run
}

func newReader(t *testing.T, page string) *reader {
	t.Helper()
	dir := t.TempDir()
	settings := filepath.Join(t.TempDir(), "hermesd.hcl")
	text := fmt.Sprintf("state_dir = %q\nlisten {\n  http = \"127.0.0.1:0\"\n}\n", t.TempDir())
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &reader{t: t, page: page, dir: dir, env: append(authorsEnv(t), "HERMESD_CONFIG="+settings)}
}

// authorsEnv is the environment of somebody with Go, hermesd and a checkout of it, and without a network.
func authorsEnv(t *testing.T) []string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(out))
	home := t.TempDir()
	telemetry := filepath.Join(home, ".config", "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		t.Fatal(err)
	}
	// The go command would leave a process behind that writes there while the folder is removed.
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o644); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "XDG_CONFIG_HOME=", "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "GOPROXY=off", "GOFLAGS=", "GOWORK=off",
		"HOME="+home, "HERMESD_SRC="+source, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func (r *reader) follow(blocks []codeBlock) {
	for i, b := range blocks {
		where := fmt.Sprintf("%s:%d", r.page, b.line)
		switch b.language {
		case "sh":
			var next codeBlock
			if i+1 < len(blocks) {
				next = blocks[i+1]
			}
			r.shell(where, b, next)
		case "text":
			r.expect(where, b.text)
		case "go", "hcl":
			r.write(where, b)
		case "json":
			if !json.Valid([]byte(b.text)) {
				r.t.Errorf("%s: no JSON", where)
			}
		case "js", "proto":
			r.excerpt(where, b)
		default:
			r.t.Fatalf("%s: nobody knows how to try a block of %q", where, b.language)
		}
	}
}

func (r *reader) command(script string) *exec.Cmd {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

func (r *reader) shell(where string, b, next codeBlock) {
	r.t.Helper()
	if b.mode == "background" {
		r.start(where, b.text)
		return
	}
	place := filepath.Join(r.t.TempDir(), "place")
	deadline := time.Now().Add(patience)
	for {
		var out bytes.Buffer
		cmd := r.command(b.text + "pwd >" + place)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		r.printed, r.background = out.String, false
		if b.mode == "retry" && time.Now().Before(deadline) && (err != nil || missing(out.String(), next.text) != "") {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if err != nil {
			r.t.Fatalf("%s: %v\n%s\n%s", where, err, b.text, &out)
		}
		break
	}
	now, err := os.ReadFile(place)
	if err != nil {
		r.t.Fatal(err)
	}
	r.dir = strings.TrimSpace(string(now))
}

// start runs a program in the background until the page's end.
func (r *reader) start(where, script string) {
	r.t.Helper()
	out := &output{changed: make(chan struct{})}
	cmd := r.command("exec " + script)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("%s: %v", where, err)
	}
	r.printed, r.background = out.String, true
	r.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			r.t.Logf("%s: it had ended", where)
		}
		if err := cmd.Wait(); err != nil {
			r.t.Logf("%s: it ended with %v", where, err)
		}
		if r.t.Failed() {
			r.t.Logf("%s printed:\n%s", where, out)
		}
	})
}

// missing returns the first line of a text that was not printed, "" if all were.
func missing(printed, text string) string {
	rest := printed
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		at := regexp.MustCompile(pattern).FindStringIndex(rest)
		if at == nil {
			return line
		}
		rest = rest[at[1]:]
	}
	return ""
}

func (r *reader) expect(where, text string) {
	r.t.Helper()
	if r.background {
		eventually(r.t, where+" is printed", func() bool { return missing(r.printed(), text) == "" })
	}
	if line := missing(r.printed(), text); line != "" {
		r.t.Fatalf("%s: the line %q was not printed, but:\n%s", where, line, r.printed())
	}
}

func (r *reader) write(where string, b codeBlock) {
	r.t.Helper()
	if b.file == "" {
		r.t.Fatalf("%s: a block of %s needs file=NAME, so that it is built", where, b.language)
	}
	path := filepath.Join(r.dir, b.file)
	if err := os.WriteFile(path, []byte(b.text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if b.language == "hcl" {
		if _, diags := config.Load(path, nil); diags.HasErrors() {
			r.t.Errorf("%s: %v", where, diags.Err())
		}
	}
}

func (r *reader) excerpt(where string, b codeBlock) {
	r.t.Helper()
	source := filepath.Join("..", "..", "pluginsdk", "pluginpb", "plugin.proto")
	if b.language == "js" {
		source = filepath.Join("..", "..", "examples", "plugins", "node", "main.js")
	}
	raw, err := os.ReadFile(source)
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.Contains(string(raw), b.text) {
		r.t.Errorf("%s: this is no excerpt of %s:\n%s", where, source, b.text)
	}
}

func TestThePagesForPluginAuthorsAreTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds many programs")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash to run the pages' commands")
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "plugin-authors", "*.md"))
	if err != nil || len(pages) < 7 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			began := time.Now()
			newReader(t, page).follow(codeBlocks(t, page))
			t.Logf("followed in %v", time.Since(began).Round(100*time.Millisecond))
		})
	}
}

func TestThePagesForPluginAuthorsLinkToPagesThatExist(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "plugin-authors", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

func TestThePagesForPluginAuthorsListEveryCodeAndEveryCheck(t *testing.T) {
	read := func(elem ...string) string {
		raw, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, elem...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	page := read("docs", "plugin-authors", "errors.md")
	codes := regexp.MustCompile(`(?m)^\t(\w+) +Code = "`).FindAllStringSubmatch(read("pluginsdk", "error.go"), -1)
	if len(codes) < 10 {
		t.Fatalf("only these codes were found: %v", codes)
	}
	for _, code := range codes {
		if !strings.Contains(page, "| `"+code[1]+"` |") {
			t.Errorf("errors.md lacks %s", code[1])
		}
	}
	page = read("docs", "plugin-authors", "testing.md")
	for _, check := range conformance.Names() {
		if !strings.Contains(page, fmt.Sprintf("| `%s` | %s |", check[0], check[1])) {
			t.Errorf("testing.md lacks %s: %s", check[0], check[1])
		}
	}
}

// authorCommand runs something as an author would, in a folder.
func authorCommand(t *testing.T, dir string, env []string, name string, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if name == "hermesd" {
		name = filepath.Join(bin, "hermesd")
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, slices.Clone(env)
	raw, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}
