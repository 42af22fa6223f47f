// Command terminal is the built-in plugin that lets agents run shell commands. Each command is a process group of its own,
// with a time limit and a bound on its output, and nothing of it is left when the call is over. Agents share neither
// environment nor shell, and no directory unless the operator names one.
//
// A command can reach whatever the plugin's process can reach: rules, approvals and the host's isolation decide what that
// is, not the directory that it starts in.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
)

// longest is the longest time limit that can be configured; the host is told to wait a little longer.
const longest = time.Hour

type settings struct {
	Root      string   `json:"root,omitempty" jsonschema:"the directory that commands start in, and below which cwd must be; without it each agent has one of its own in the plugin's state"`
	Shell     string   `json:"shell,omitempty" jsonschema:"the program that gets the command after -c" default:"/bin/sh"`
	EnvPass   []string `json:"env_pass,omitempty" jsonschema:"environment variables that commands get besides PATH, HOME, LANG and TZ; the block's pass_env or env must give them to the plugin"`
	Timeout   int      `json:"timeout,omitempty" jsonschema:"seconds that a command may take which asks for no time" default:"60" minimum:"1" maximum:"3600"`
	MaxTime   int      `json:"max_timeout,omitempty" jsonschema:"most seconds that a command may ask for" default:"600" minimum:"1" maximum:"3600"`
	MaxOutput int      `json:"max_output_bytes,omitempty" jsonschema:"how much of a command's output is returned; of more, the end" default:"65536" minimum:"1024" maximum:"4194304"`
}

type input struct {
	Command string `json:"command" jsonschema:"what to run, as one would type it into a shell" minLength:"1" maxLength:"65536"`
	Cwd     string `json:"cwd,omitempty" jsonschema:"the directory to run it in, relative to the working directory" maxLength:"4096"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds after which it is ended" minimum:"1" maximum:"3600"`
}

// terminal is the plugin's state: what the operator configured.
type terminal struct{ settings }

func (t *terminal) configure(_ context.Context, s settings) error {
	if s.Root != "" {
		dir, err := realDirectory(s.Root)
		if err != nil {
			return &pluginsdk.ConfigError{Path: "/root", Summary: err.Error(), Detail: "the directory must exist and be readable for the plugin"}
		}
		s.Root = dir
	}
	if info, err := os.Stat(s.Shell); err != nil || info.IsDir() {
		return &pluginsdk.ConfigError{Path: "/shell", Summary: fmt.Sprintf("there is no program %s", s.Shell), Detail: "give the path of a shell such as /bin/sh"}
	}
	if s.Timeout > s.MaxTime {
		return &pluginsdk.ConfigError{Path: "/timeout", Summary: "timeout is longer than max_timeout", Detail: "raise max_timeout or lower timeout"}
	}
	t.settings = s
	return nil
}

func realDirectory(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", path)
	}
	return abs, err
}

// home is the directory that the calling agent's commands start in.
func (t *terminal) home(ctx context.Context) (string, error) {
	if t.Root != "" {
		return t.Root, nil
	}
	state := pluginsdk.StateDir(ctx)
	if state == "" {
		return "", pluginsdk.Errorf(pluginsdk.BadConfiguration, "there is no directory to work in; the operator must set root in the plugin's config block")
	}
	dir := filepath.Join(state, "agents", "agent-"+url.PathEscape(pluginsdk.CurrentCall(ctx).Agent))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the agent's directory cannot be made: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// directory finds the directory that a command asks for.
func directory(home, cwd string) (string, error) {
	path := cwd
	if !filepath.IsAbs(path) {
		path = filepath.Join(home, cwd)
	}
	dir, err := realDirectory(path)
	if err != nil {
		return "", pluginsdk.InvalidArgument("/cwd", "there is no directory %q below the working directory", cwd)
	}
	if rel, err := filepath.Rel(home, dir); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", pluginsdk.InvalidArgument("/cwd", "%q is not below the working directory; leave cwd out to start there", cwd)
	}
	return dir, nil
}

// environment is a command's complete environment.
func (t *terminal) environment(home string) []string {
	env := []string{"TERM=dumb", "PWD=" + home}
	for _, name := range append([]string{"PATH", "LANG", "TZ"}, t.EnvPass...) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if t.Root == "" { // an agent's own directory is its home, too
		return append(env, "HOME="+home)
	}
	return append(env, "HOME="+cmp.Or(os.Getenv("HOME"), home))
}

func (t *terminal) run(ctx context.Context, in input) (*pluginsdk.Result, error) {
	limit := cmp.Or(in.Timeout, t.Timeout)
	if limit > t.MaxTime {
		return nil, pluginsdk.InvalidArgument("/timeout", "a command may take at most %d seconds here", t.MaxTime)
	}
	home, err := t.home(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := directory(home, in.Cwd)
	if err != nil {
		return nil, err
	}
	c := &command{shell: t.Shell, line: in.Command, dir: dir, env: t.environment(home), limit: time.Duration(limit) * time.Second, keep: t.MaxOutput}
	end, err := c.run(ctx)
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		return nil, pluginsdk.Errorf(pluginsdk.ToolFailed, "the command could not be started: %w", err)
	}
	return end.result(c.limit), nil
}

func plugin() *pluginsdk.Plugin {
	t := &terminal{}
	return &pluginsdk.Plugin{
		Name: "terminal", Version: "1.0.0", License: "Apache-2.0", Description: "Runs shell commands.",
		Config: pluginsdk.NewConfig(t.configure),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("terminal", "Run a shell command and return its output (standard output and error together) and exit status. "+
				"There is no input to type into; what it leaves running in the background ends with it.",
				t.run, &pluginsdk.ToolOptions{
					Toolset: "terminal", Title: "Run a command", Coldness: pluginsdk.Core, Destructive: new(true), OpenWorld: new(true),
					Timeout: longest + 10*time.Second, Keywords: []string{"shell", "bash", "execute", "script", "process", "console"},
					Examples: []any{input{Command: "git status --short"}, input{Command: "make test", Cwd: "project", Timeout: 300}},
				}),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
