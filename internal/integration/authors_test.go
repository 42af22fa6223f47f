package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testenv"
	"github.com/hermesd/hermesd/internal/testnode"
)

func TestEveryTemplateBuildsAndPassesItsTests(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds many programs")
	}
	env := authorsEnv(t)
	for _, kind := range []string{"minimal", "http", "stateful", "hook"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			if out, code := authorCommand(t, dir, env, "hermesd", "plugin", "new", "my-"+kind, "--template", kind, "--sdk", source(t)); code != 0 {
				t.Fatal(out)
			}
			dir = filepath.Join(dir, "my-"+kind)
			for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}, {"build", "."}} {
				if out, code := authorCommand(t, dir, env, "go", args...); code != 0 {
					t.Fatalf("go %v:\n%s", args, out)
				}
			}
			if out, code := authorCommand(t, dir, env, "gofmt", "-l", "."); code != 0 || out != "" {
				t.Errorf("not formatted: %s", out)
			}
			if main, err := os.ReadFile(filepath.Join(dir, "main.go")); err != nil || kind == "minimal" && strings.Count(string(main), "\n") > 40 {
				t.Errorf("main.go has more than 40 lines (%v)", err)
			}
			settings := `{}`
			if kind == "http" {
				settings = `{"base_url":"http://127.0.0.1:1"}`
			}
			if out, code := authorCommand(t, dir, env, "hermesd", "plugin", "check", "--settings", settings, "./my-"+kind); code != 0 {
				t.Error(out)
			}
		})
	}
}

func source(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestANewPluginIsRefusedWithAReason(t *testing.T) {
	env, dir := authorsEnv(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"Weather":                    "lower-case letters",
		"taken":                      "is not empty",
		"a --template big":           "there is: minimal, http, stateful, hook",
		"a --template ../templates":  "there is no template",
		"a --sdk .":                  "name the folder of a hermesd checkout",
		"published --module x.dev/p": "--sdk with a checkout", // no proxy knows the SDK here
	} {
		out, code := authorCommand(t, dir, env, "hermesd", append([]string{"plugin", "new"}, strings.Fields(args)...)...)
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("new %s: %d %s, want %q", args, code, out, want)
		}
	}
}

// What `make sdk` makes is a proxy that a plugin can be built against without any checkout.
func TestAPluginIsBuiltAgainstThePackedSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills a module cache")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to tell which files belong to the module")
	}
	if out, err := exec.Command("git", "-C", source(t), "rev-parse", "--show-toplevel").CombinedOutput(); err != nil {
		t.Skipf("this is no checkout: %s", out)
	}
	env, dir, proxy := authorsEnv(t), t.TempDir(), t.TempDir()
	if out, code := authorCommand(t, source(t), env, "go", "run", "./internal/sdkproxy", "-out", proxy); code != 0 {
		t.Fatal(out)
	}
	out, _ := authorCommand(t, dir, env, "go", "env", "GOMODCACHE")
	modules := t.TempDir() // the packed SDK must not stay in the machine's own cache
	env = append(env, "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE="+modules,
		fmt.Sprintf("GOPROXY=file://%s,file://%s/cache/download", proxy, strings.TrimSpace(out)))
	if out, code := authorCommand(t, dir, env, "hermesd", "plugin", "new", "packed"); code != 0 {
		t.Fatal(out)
	}
	if out, code := authorCommand(t, filepath.Join(dir, "packed"), env, "go", "build", "."); code != 0 {
		t.Fatal(out)
	}
	if out, code := authorCommand(t, filepath.Join(dir, "packed"), env, "hermesd", "plugin", "check", "./packed"); code != 0 {
		t.Error(out)
	}
}

// developer is a `plugin dev` in the background.
type developer struct {
	t   *testing.T
	out *output
	cmd *exec.Cmd
}

func develop(t *testing.T, d *running, dir string, args ...string) *developer {
	t.Helper()
	v := &developer{t: t, out: &output{changed: make(chan struct{})}}
	v.cmd = exec.Command(filepath.Join(bin, "hermesd"), append([]string{"plugin", "dev", "-c", d.config}, args...)...)
	v.cmd.Dir, v.cmd.Env, v.cmd.Stdout, v.cmd.Stderr, v.cmd.WaitDelay = dir, authorsEnv(t), v.out, v.out, time.Second
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if v.cmd.ProcessState == nil {
			v.end()
		}
		if t.Failed() {
			t.Logf("plugin dev printed:\n%s", v.out)
		}
	})
	return v
}

// end is Ctrl-C.
func (v *developer) end() {
	v.t.Helper()
	if err := v.cmd.Process.Signal(syscall.SIGINT); err != nil {
		v.t.Fatal(err)
	}
	if err := v.cmd.Wait(); err != nil {
		v.t.Errorf("plugin dev ended with %v", err)
	}
}

func (v *developer) says(text string) {
	v.t.Helper()
	eventually(v.t, "plugin dev says "+text, func() bool { return strings.Contains(v.out.String(), text) })
}

func edit(t *testing.T, file, old, new string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), old) {
		t.Fatalf("%s lacks %q", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), old, new)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestASavedFileIsBuiltAndLoaded(t *testing.T) {
	d := start(t, "")
	dir := t.TempDir()
	if out, code := authorCommand(t, dir, authorsEnv(t), "hermesd", "plugin", "new", "draft", "--sdk", source(t)); code != 0 {
		t.Fatal(out)
	}
	dir = filepath.Join(dir, "draft")
	v := develop(t, d, dir)
	v.says("ready (pid")
	greeting := func(want string) func() bool {
		return func() bool {
			out, _, code := d.hermesd("tool", "call", "draft_greet", `{"name":"Ada"}`)
			return code == 0 && strings.Contains(out, want)
		}
	}
	eventually(t, "the tool can be called", greeting("Hello, Ada!"))

	edit(t, filepath.Join(dir, "main.go"), "Hello, ", "Salut, ")
	eventually(t, "the saved file is loaded", greeting("Salut, Ada!"))

	edit(t, filepath.Join(dir, "main.go"), "func main()", "func main(")
	v.says("the version before keeps running")
	if !strings.Contains(v.out.String(), "syntax error") {
		t.Errorf("the build's error is not shown:\n%s", v.out)
	}
	if !greeting("Salut, Ada!")() {
		t.Error("a file that does not build took the plugin down")
	}

	edit(t, filepath.Join(dir, "main.go"), "func main(", "func main()")
	edit(t, filepath.Join(dir, "main.go"), "draft_greet", "draft_salute")
	eventually(t, "a new tool is there and the old one is gone", func() bool {
		out, _, _ := d.hermesd("tool", "list")
		return strings.Contains(out, "draft_salute") && !strings.Contains(out, "draft_greet")
	})

	if out, code := authorCommand(t, dir, authorsEnv(t), "hermesd", "plugin", "dev", "-c", d.config); code != 1 || !strings.Contains(out, "attached as \"draft\" already") {
		t.Errorf("a second session: %d %s", code, out)
	}
	v.end()
	if out, _, _ := d.hermesd("plugin", "list"); strings.Contains(out, "draft") {
		t.Errorf("it is still there after its session:\n%s", out)
	}
}

func TestAPluginInDevelopmentTakesTheConfiguredOnesPlace(t *testing.T) {
	d := start(t, fmt.Sprintf("plugin \"files\" {\n  path = %q\n  config {\n    root = %q\n  }\n}\n", plugin("files"), t.TempDir()))
	ready(t, d, "files_list")
	v := develop(t, d, filepath.Join(source(t), "examples", "plugins", "hello"), "--name", "files", "--settings", "{}")
	v.says("ready (pid")
	tools := func() string { out, _, _ := d.hermesd("tool", "list"); return out }
	eventually(t, "greet is there in place of files_list", func() bool {
		return strings.Contains(tools(), "greet") && !strings.Contains(tools(), "files_list")
	})
	v.end()
	eventually(t, "the configured one is back", func() bool {
		return !strings.Contains(tools(), "greet") && strings.Contains(tools(), "files_list")
	})
}

func TestEveryExampleKeepsTheContract(t *testing.T) {
	for name, args := range map[string][]string{
		"hello": nil, "weather": {"--env", "OPENWEATHER_API_KEY=secret-key"}, "stateful": nil, "hook": nil, "conformance": nil,
		"catalog":   {"--settings", `{"inline":[{"name":"t","description":"d","parameters":{"type":"object"}}]}`},
		"streaming": {"--slow", `countdown={"seconds":3600}`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := hermesd(t, os.DevNull, append(append([]string{"plugin", "check"}, args...), plugin(name))...)
			if code != 0 {
				t.Errorf("%s%s", out, errs)
			}
		})
	}
}

func TestThePluginInAModuleOfItsOwnPassesItsTests(t *testing.T) {
	dir := filepath.Join(source(t), "examples", "plugins", "outside")
	if out, code := authorCommand(t, dir, authorsEnv(t), "go", "test", "./..."); code != 0 {
		t.Error(out)
	}
}

func TestThePluginInJavaScriptHasTodaysContract(t *testing.T) {
	ours, err := os.ReadFile(filepath.Join(source(t), "pluginsdk", "pluginpb", "plugin.proto"))
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(filepath.Join(source(t), "examples", "plugins", "node", "plugin.proto"))
	if err != nil || string(copied) != string(ours) {
		t.Errorf("examples/plugins/node/plugin.proto is not that of pluginsdk/pluginpb (%v); copy it", err)
	}
}

func TestThePluginInJavaScriptKeepsTheContract(t *testing.T) {
	modules := testnode.Modules(t)
	if _, err := os.Stat(filepath.Join(modules, "@grpc", "grpc-js")); err != nil {
		testenv.Missing(t, "npm", "the packages in "+modules+" lack @grpc/grpc-js; see internal/testnode/package.json")
	}
	main := filepath.Join(source(t), "examples", "plugins", "node", "main.js")
	env := "NODE_PATH=" + modules
	out, code := authorCommand(t, t.TempDir(), authorsEnv(t), "hermesd", "plugin", "check", "--mtls=false", "--env", env,
		"--slow", `nap={"seconds":3600}`, testnode.Node(t), main)
	if code != 0 {
		t.Error(out)
	}
	d := start(t, fmt.Sprintf("plugin \"words\" {\n  command = [%q, %q]\n  mtls = false\n  env = { NODE_PATH = %q }\n  config {\n    separator = \",\"\n  }\n}\n", testnode.Node(t), main, modules))
	ready(t, d, "count_words")
	if out, errs, code := d.hermesd("tool", "call", "count_words", `{"text":"one,two,three"}`); code != 0 || !strings.Contains(out, `"words":3`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

func TestABadPluginFailsItsCheckForProgramsToo(t *testing.T) {
	out, _, code := hermesd(t, os.DevNull, "plugin", "check", "--json", filepath.Join(bin, "hermesd"))
	var report struct {
		OK       bool
		Findings []struct{ Check, Status string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if code != 1 || report.OK || len(report.Findings) != 1 || report.Findings[0].Status != "fail" {
		t.Errorf("code %d, %+v", code, report)
	}
}

func TestAWrongConfigurationIsShownWithFileAndLine(t *testing.T) {
	d := start(t, fmt.Sprintf(`plugin "weather" {
  path = %q
  config {
    timeout  = 5
    base_url = "nowhere"
  }
}
plugin "slow" {
  path = %q
  config {
    timeout = 500
  }
}
`, plugin("weather"), plugin("weather")))
	raw, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	line := func(text string) string {
		before, _, _ := strings.Cut(string(raw), text)
		return fmt.Sprintf("%s:%d: ", d.config, strings.Count(before, "\n")+1)
	}
	for _, command := range []string{"plugin list", "doctor"} {
		eventually(t, command+" names both lines", func() bool {
			out, _, _ := d.hermesd(strings.Fields(command)...)
			return strings.Contains(out, line(`base_url = "nowhere"`)) && strings.Contains(out, line("timeout = 500"))
		})
	}
	out, errs, code := hermesd(t, os.DevNull, "config", "check", "--plugins", d.config)
	for _, want := range []string{`base_url = "nowhere"`, "timeout = 500"} {
		if !strings.Contains(errs, want) {
			t.Errorf("config check lacks %q:\n%s%s", want, out, errs)
		}
	}
	if code != 1 {
		t.Errorf("config check ended with %d", code)
	}
}

func TestAPageIsMadeOfAnyPlugin(t *testing.T) {
	want := []string{"# weather 1.0.0", "## Configuration", "| `base_url` |", "## `weather`", "one of `metric`, `imperial`", `{"city":"Oslo","units":"metric"}`}
	for _, target := range []string{plugin("weather"), filepath.Join(source(t), "examples", "plugins", "weather")} {
		out, errs, code := hermesd(t, os.DevNull, "plugin", "docs", target)
		for _, text := range want {
			if code != 0 || !strings.Contains(out, text) {
				t.Errorf("%s: %d, lacks %q:\n%s%s", target, code, text, out, errs)
			}
		}
	}
}
