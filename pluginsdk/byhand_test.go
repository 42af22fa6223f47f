package pluginsdk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hand starts this binary by hand as the plugin "hand".
func hand(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "PLUGINSDK_TEST_PLUGIN=hand")
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestStartedByHandThePluginAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr []string
	}{
		"help without a command":  {nil, "", 0, []string{"hand 1.0.0", "invoke TOOL"}, nil},
		"help":                    {[]string{"help"}, "", 0, []string{"describe"}, nil},
		"an unknown command":      {[]string{"serve"}, "", 2, nil, []string{`no command "serve"`, `try "help"`}},
		"an unknown option":       {[]string{"invoke", "--loud", "greet"}, "", 2, nil, []string{"loud"}},
		"invoke":                  {[]string{"invoke", "greet", `{"name":"Ann"}`}, "", 0, []string{"Hello Ann\n"}, []string{`info: "greeting"`, "progress: 1/2 half"}},
		"too many from stdin":     {[]string{"invoke", "greet", "-"}, `{"name":"Bob"}` + strings.Repeat(" ", 16<<20), 1, nil, []string{"more than 16777216 bytes"}},
		"arguments from stdin":    {[]string{"invoke", "greet", "-"}, `{"name":"Bob"}`, 0, []string{"Hello Bob\n"}, nil},
		"a configuration":         {[]string{"invoke", "--config", `{"greeting":"Hi"}`, "greet", `{"name":"Ann"}`}, "", 0, []string{"Hi Ann\n"}, nil},
		"a wrong configuration":   {[]string{"invoke", "--config", `{"greting":"Hi"}`, "greet", `{}`}, "", 1, nil, []string{"configuration", "greting"}},
		"another agent":           {[]string{"invoke", "--agent", "ann", "whoami"}, "", 0, []string{"ann\n"}, nil},
		"a block that is no text": {[]string{"invoke", "picture"}, "", 0, []string{`{"type":"image","data":"AQ==","mimeType":"image/png"}`}, nil},
		"a wrong argument":        {[]string{"invoke", "greet", `{"nam":"x"}`}, "", 1, nil, []string{"invalid_arguments", "nam"}},
		"a tool that fails":       {[]string{"invoke", "fail"}, "", 1, []string{"no luck\n"}, nil},
		"a tool that asks":        {[]string{"invoke", "ask"}, "", 1, nil, []string{"unsupported", "by hand"}},
		"no tool":                 {[]string{"invoke"}, "", 2, nil, []string{"name of a tool"}},
		"an unknown tool":         {[]string{"invoke", "x"}, "", 1, nil, []string{"unknown_tool"}},
		"too many words":          {[]string{"describe", "x"}, "", 2, nil, []string{"takes no arguments"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := hand(t, c.stdin, c.args...)
			if code != c.code {
				t.Errorf("exit = %d", code)
			}
			for _, w := range c.stdout {
				if !strings.Contains(stdout, w) {
					t.Errorf("stdout %q lacks %q", stdout, w)
				}
			}
			for _, w := range c.stderr {
				if !strings.Contains(stderr, w) {
					t.Errorf("stderr %q lacks %q", stderr, w)
				}
			}
			if c.stdout == nil && stdout != "" {
				t.Errorf("stdout = %q", stdout)
			}
		})
	}
}

func TestDescribeByHandIsTheSameEveryTime(t *testing.T) {
	first, _, code := hand(t, "", "describe")
	var d map[string]any
	if err := json.Unmarshal([]byte(first), &d); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	if d["name"] != "hand" || len(d["tools"].([]any)) != 5 || d["config_schema"] == nil {
		t.Errorf("description = %s", first)
	}
	if second, _, _ := hand(t, "", "describe"); second != first {
		t.Errorf("a second time it is %s", second)
	}
}

func TestDocsByHandAreAPageOfMarkdown(t *testing.T) {
	page, _, code := hand(t, "", "docs")
	if code != 0 {
		t.Fatalf("exit = %d", code)
	}
	for _, want := range []string{
		"# hand 1.0.0\n", "asks for: `ask_human`", "## Configuration\n", "| `greeting` | string | no | Default `\"Hello\"` |",
		"## greet\n\nGreet somebody.\n\nToolset `people`, read-only, not open-world.\n",
		"| `name` | string | yes | who |", "| `style` | string | no | formal \\| friendly. One of `a`, `b` |", "No parameters.", "```json\n{\"name\":\"Ada\"}\n```",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
