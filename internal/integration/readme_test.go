package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/config"
)

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func blocks(t *testing.T, path, language string) []string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		if m[1] == language {
			list = append(list, m[2])
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no %s block", path, language)
	}
	return list
}

const top = "../.."

// The README's commands are run as they stand, in a copy of the tree, by a person without any state.
func TestTheCommandsOfTheReadmeWork(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, dir)
	env := append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME=", "GOFLAGS=-mod=mod",
		"GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOCACHE="+goEnv(t, "GOCACHE"))
	scripts := blocks(t, filepath.Join(top, "README.md"), "sh")
	if !slices.Contains(strings.Split(scripts[0], "\n"), "make run") {
		t.Fatalf("the first commands are %q, not make run", scripts[0])
	}
	out := &output{changed: make(chan struct{})}
	daemon := exec.Command("make", "run")
	daemon.Dir, daemon.Env, daemon.Stdout, daemon.Stderr, daemon.WaitDelay = dir, env, out, out, time.Second
	ownGroup(daemon)
	if err := daemon.Start(); err != nil {
		t.Skip("make is not installed")
	}
	t.Cleanup(func() { endGroup(t, daemon) })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, ok := out.find(ctx, "A first search"); !ok {
		t.Fatalf("make run did not come up:\n%s", out)
	}
	if strings.Contains(out.String(), "address already in use") {
		t.Skip("port 7433 is taken on this machine")
	}
	// Plugins start behind the daemon; the commands find them when they are there.
	eventually(t, "the plugins are there", func() bool {
		cmd := exec.Command("bin/hermesd", "-c", "config.hcl.example", "tool", "list", "--all")
		cmd.Dir, cmd.Env = dir, env
		list, err := cmd.Output()
		return err == nil && strings.Contains(string(list), "greet") && strings.Contains(string(list), "files_read") && strings.Contains(string(list), "weather")
	})
	for _, script := range scripts[1:] {
		for line := range strings.Lines(script) {
			cmd := exec.CommandContext(ctx, "sh", "-c", line)
			cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
			answer, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s%v\n%s", line, err, answer)
			}
			if strings.Contains(line, "greet") && !strings.Contains(string(answer), "greet") && !strings.Contains(string(answer), "Bonjour, Ada!") && !strings.Contains(string(answer), "Hello, Ada!") {
				t.Errorf("%sdoes not show what it is for:\n%s", line, answer)
			}
		}
	}
}

func TestThePluginOfTheReadmeWorks(t *testing.T) {
	code := blocks(t, filepath.Join(top, "README.md"), "go")[0]
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "counter")
	build := exec.Command("go", "build", "-o", binary, filepath.Join(dir, "main.go"))
	build.Dir = top // so that it finds the module
	if report, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	answer, err := exec.Command(binary, "invoke", "count_text", `{"text": "a b"}`).CombinedOutput()
	if err != nil || !strings.Contains(string(answer), "2") {
		t.Errorf("invoke: %v\n%s", err, answer)
	}
	d := start(t, "plugin \"counter\" {\n  path = \""+binary+"\"\n}\n")
	ready(t, d, "count_text")
	if text, isError := call(t, d.connect(nil), "count_text", map[string]any{"text": "a b\nc", "unit": "lines"}); isError || !strings.Contains(text, "2") {
		t.Errorf("called through the daemon: %s", text)
	}
}

func TestTheOtherBlocksOfTheReadmeAreValid(t *testing.T) {
	for _, text := range blocks(t, filepath.Join(top, "README.md"), "json") {
		if !json.Valid([]byte(text)) {
			t.Errorf("no JSON: %s", text)
		}
	}
	for _, text := range blocks(t, filepath.Join(top, "README.md"), "hcl") {
		env := &config.Environment{Lookup: func(name string) (string, bool) { return "/" + name, true }}
		if _, diags := config.Parse("README.hcl", []byte(text), env); diags.HasErrors() {
			t.Errorf("%s\n%v", text, diags.Err())
		}
	}
}

// copyTree copies what git knows of the repository, and what it does not ignore.
func copyTree(t *testing.T, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "-co", "--exclude-standard")
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		t.Skipf("git does not list the files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		raw, err := os.ReadFile(filepath.Join(top, name))
		if os.IsNotExist(err) {
			continue // deleted, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
