package floor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/policy/floor"
	"github.com/hermesd/hermesd/runtime/tool"
)

func definition(source tool.Source, name string, readOnly bool) *tool.Definition {
	return &tool.Definition{Name: name, Source: source, SourceName: "x", Annotations: tool.Annotations{ReadOnly: &readOnly}}
}

var (
	terminal = definition(tool.SourceBuiltin, "terminal", false)
	write    = definition(tool.SourceBuiltin, "files_write", false)
	read     = definition(tool.SourceBuiltin, "files_read", true)
	foreign  = definition(tool.SourceMCP, "mcp__fs__read_file", true)
	move     = definition(tool.SourceMCP, "mcp__fs__move_file", false)
	manage   = definition(tool.SourceBuiltin, "manage_connections", false)
)

// world is a machine with a daemon on it: its paths begin with the folder that is returned.
func world(t *testing.T) (string, *floor.Floor) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"etc/hermesd/conf.d", "var/hermesd/plugins/terminal/agent", "home/docs", "run/secrets"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"etc/hermesd/config.hcl", "var/hermesd/hermesd.db", "var/hermesd/approval.key", "home/docs/a.md", "run/secrets/token"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"home/docs/state": "var/hermesd", "home/docs/conf": "etc/hermesd/config.hcl", "home/docs/later": "etc/hermesd/conf.d/new.hcl"} {
		if err := os.Symlink(filepath.Join(root, target), filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(p string) string { return filepath.Join(root, p) }
	return root, floor.New(&floor.Options{
		Config: []string{at("etc/hermesd/config.hcl"), at("etc/hermesd/conf.d"), at("etc/hermesd/hermesd.lock.hcl")},
		State:  at("var/hermesd"), Free: at("var/hermesd/plugins"), Secrets: []string{at("run/secrets")}, Home: at("home"),
		Bases: func(d *tool.Definition, _ string) []string {
			if d == terminal {
				return []string{at("var/hermesd/plugins/terminal/agent")}
			}
			return []string{at("home/docs")}
		},
	})
}

func TestWhatTouchesTheDaemonIsStopped(t *testing.T) {
	root, f := world(t)
	cases := map[string]struct {
		tool *tool.Definition
		args string // ROOT is the world
		want floor.Action
	}{
		"a file is written elsewhere":                       {write, `{"path":"a.md","content":"x"}`, ""},
		"the configuration is written":                      {write, `{"path":"ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"by a path with detours":                            {write, `{"path":"ROOT/home/../etc/./hermesd/config.hcl"}`, floor.Deny},
		"by a path relative to the tool's folder":           {write, `{"path":"../../etc/hermesd/config.hcl"}`, floor.Deny},
		"through a symbolic link":                           {write, `{"path":"conf"}`, floor.Deny},
		"through a link that leads to nothing yet":          {write, `{"path":"later"}`, floor.Deny},
		"from above a link's target":                        {write, `{"path":"state/../hermesd/hermesd.db"}`, floor.Deny},
		"a new file from above a link's target":             {write, `{"path":"state/../hermesd/new"}`, floor.Deny},
		"a new file of conf.d":                              {write, `{"path":"ROOT/etc/hermesd/conf.d/z.hcl"}`, floor.Deny},
		"the lock file, which is not there yet":             {write, `{"path":"ROOT/etc/hermesd/hermesd.lock.hcl"}`, floor.Deny},
		"a neighbour whose name begins alike":               {write, `{"path":"ROOT/etc/hermesd/config.hcl.bak"}`, ""},
		"the state, through a link to its folder":           {write, `{"path":"state/hermesd.db"}`, floor.Deny},
		"a path in a list, deep inside":                     {write, `{"edits":[{"target":"ROOT/var/hermesd/hermesd.db"}]}`, floor.Deny},
		"a path under an unknown key":                       {write, `{"thing":"ROOT/var/hermesd/hermesd.db"}`, floor.Deny},
		"a file URL":                                        {write, `{"uri":"file://ROOT/var/hermesd/h%65rmesd.db"}`, floor.Deny},
		"a file URL in capitals":                            {write, `{"path":"FILE://ROOT/var/hermesd/hermesd.db"}`, floor.Deny},
		"a file URL with a host":                            {write, `{"path":"file://localhostROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a file URL with one slash":                         {write, `{"thing":"file:ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a file URL with a query and a fragment":            {write, `{"thing":"file://ROOT/etc/hermesd/config.hcl?a#b"}`, floor.Deny},
		"a file URL with a broken escape":                   {write, `{"thing":"file://ROOT/etc/%zz/../h%65rmesd/config.hcl"}`, floor.Deny},
		"a file URL behind a server's own":                  {foreign, `{"uri":"mcp://kb/FILE://localhostROOT/var/hermesd/hermesd.db"}`, floor.Deny},
		"a file URL of something else":                      {foreign, `{"uri":"mcp://kb/FILE://localhostROOT/home/docs/a.md"}`, ""},
		"a path as a key":                                   {write, `{"contents":{"ROOT/etc/hermesd/config.hcl":"x"}}`, floor.Deny},
		"a relative path as a key":                          {write, `{"files":{"conf":{"text":"x"}}}`, floor.Deny},
		"a blank before a path":                             {write, `{"thing":" ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a blank after a path":                              {write, `{"path":"ROOT/etc/hermesd/config.hcl "}`, floor.Deny},
		"a line's end after a path":                         {write, `{"path":"\tROOT/etc/hermesd/config.hcl\r\n"}`, floor.Deny},
		"a path behind many blanks":                         {write, `{"path":"` + strings.Repeat(" ", 5000) + `ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a path with many detours":                          {write, `{"path":"` + strings.Repeat("/.", 5000) + `ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a file URL of many escapes":                        {write, `{"path":"file://` + strings.Repeat("%2f", 2000) + `ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a null after a path":                               {write, `{"path":"ROOT/etc/hermesd/config.hcl\u0000"}`, floor.Deny},
		"a command with escapes":                            {terminal, `{"command":"cat $'\\x2f..ROOT/var/h\\145rm\\u0065sd/hermesd.db'"}`, floor.Deny},
		"a command with escapes, in a shell inside":         {terminal, `{"command":"bash -c \"cat $'ROOT/var/h\\x65rmesd/hermesd.db'\""}`, floor.Deny},
		"a command with escapes that says nothing":          {terminal, `{"command":"printf $'\\x2f\\n it\\'s' $'"}`, ""},
		"a command with a translated text":                  {terminal, `{"command":"cat $\"ROOT/var/hermesd/hermesd.db\""}`, floor.Deny},
		"a command with a file URL":                         {terminal, `{"command":"curl FILE://localhostROOT/var/h%65rmesd/hermesd.db"}`, floor.Deny},
		"a text that speaks of the configuration":           {write, `{"path":"a.md","content":"see ROOT/etc/hermesd/config.hcl\n"}`, ""},
		"a plugin's own folder":                             {write, `{"path":"ROOT/var/hermesd/plugins/terminal/x"}`, ""},
		"the folder of all plugins":                         {write, `{"path":"ROOT/var/hermesd/plugins"}`, floor.Deny},
		"a built-in reads the configuration":                {read, `{"path":"ROOT/etc/hermesd/config.hcl"}`, ""},
		"a built-in reads a key":                            {read, `{"path":"ROOT/var/hermesd/approval.key"}`, floor.Deny},
		"a built-in reads a token":                          {read, `{"path":"ROOT/run/secrets/token"}`, floor.Deny},
		"a pattern that covers a key":                       {read, `{"pattern":"ROOT/var/*/approval.*"}`, floor.Deny},
		"a pattern that covers everything":                  {write, `{"glob":"ROOT/**"}`, floor.Deny},
		"a third party that only reads, as it says":         {foreign, `{"path":"ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"a third party reads something else":                {foreign, `{"path":"ROOT/home/docs/a.md"}`, ""},
		"a folder above the state is moved":                 {move, `{"source":"ROOT/var","destination":"ROOT/gone"}`, floor.Deny},
		"a folder above the state is written into":          {write, `{"path":"ROOT/var"}`, ""},
		"a command reads something":                         {terminal, `{"command":"ls -la ROOT/home && git status"}`, ""},
		"a command edits the configuration":                 {terminal, `{"command":"echo 'agent \"x\" {}' >> ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"without blanks":                                    {terminal, `{"command":"echo x>ROOT/etc/hermesd/config.hcl"}`, floor.Deny},
		"with quotes inside":                                {terminal, `{"command":"echo x > ROOT/etc/her'mes'd/\"config\".hcl"}`, floor.Deny},
		"with a backslash":                                  {terminal, `{"command":"tee ROOT/etc/hermesd/conf\\ig.hcl"}`, floor.Deny},
		"in a shell inside":                                 {terminal, `{"command":"sh -c 'cat ROOT/var/hermesd/approval.key'"}`, floor.Deny},
		"after cd":                                          {terminal, `{"command":"cd ROOT/etc; cd hermesd; rm config.hcl"}`, floor.Deny},
		"with ~":                                            {terminal, `{"command":"cat ~/../var/hermesd/hermesd.db"}`, floor.Deny},
		"with $HOME":                                        {terminal, `{"command":"cat \"${HOME}/docs/state/hermesd.db\""}`, floor.Deny},
		"with a wildcard":                                   {terminal, `{"command":"cp ROOT/etc/herm*/conf?g.hcl ."}`, floor.Deny},
		"with alternatives":                                 {terminal, `{"command":"cp ROOT/etc/hermesd/{config,x}.hcl ."}`, floor.Deny},
		"with an option":                                    {terminal, `{"command":"dd if=/dev/null of=ROOT/var/hermesd/hermesd.db"}`, floor.Deny},
		"with ..":                                           {terminal, `{"command":"cat ../../../approval.key"}`, floor.Deny},
		"a folder above is removed":                         {terminal, `{"command":"rm -rf ROOT/var"}`, floor.Deny},
		"all is removed":                                    {terminal, `{"command":"rm -rf /"}`, floor.Deny},
		"something else is removed in a folder above":       {terminal, `{"command":"cd ROOT && rm -rf build"}`, ""},
		"a folder above is looked through":                  {terminal, `{"command":"find ROOT -name a.md; git add ROOT/home"}`, ""},
		"a folder above is looked through and emptied":      {terminal, `{"command":"find ROOT -name '*.db' -delete"}`, floor.Deny},
		"the command's own folder is emptied":               {terminal, `{"command":"rm -rf ./build"}`, ""},
		"a link to the configuration is made":               {terminal, `{"command":"ln -s ROOT/etc/hermesd/config.hcl x"}`, floor.Deny},
		"behind many words":                                 {terminal, `{"command":"echo ` + strings.Repeat("a ", 5000) + `; cat ROOT/var/hermesd/approval.key"}`, floor.Deny},
		"an argument vector":                                {foreign, `{"command":["cat","ROOT/var/hermesd/approval.key"]}`, floor.Deny},
		"an MCP server is installed":                        {manage, `{"action":"install","servers":["x"]}`, floor.Ask},
		"connections are looked at":                         {manage, `{"action":"status"}`, ""},
		"an MCP server is installed by the command line":    {terminal, `{"command":"hermesd mcp-server add x"}`, floor.Ask},
		"what cannot be a path: too long, or several lines": {write, `{"path":"` + strings.Repeat("a", 5000) + `","file":"a\nb"}`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var args map[string]any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(c.args, "ROOT", root)), &args); err != nil {
				t.Fatal(err)
			}
			got := f.Decide(c.tool, "desk", args)
			if got.Action != c.want || (got.Action != "" && (got.Rule == "" || got.Reason == "")) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

func FuzzDecide(f *testing.F) {
	for _, s := range []string{"cat /a/b", `sh -c "x 'y'"`, `\`, "{", "$HOME/{a,b", "~", "file://%zz", "[", "a=b:c,d", `$'\x2fa\057b\u0063' $'`, "mcp://kb/FILE://h/a%2fb%z?q#f", " /a/b\n"} {
		f.Add(s)
	}
	fl := floor.New(&floor.Options{Config: []string{"/a/b"}, State: "/s", Free: "/s/plugins", Home: "/h"})
	f.Fuzz(func(t *testing.T, s string) {
		fl.Decide(terminal, "desk", map[string]any{"command": s, "path": s})
		if d := fl.Decide(terminal, "desk", map[string]any{"command": []any{"cat", "/a/b", s}}); d.Action != floor.Deny {
			t.Errorf("%q beside a protected path: %+v", s, d)
		}
		for _, path := range []string{" /a/b\n", "FILE:///a/b", "mcp://kb/file://localhost/a/%62"} {
			if d := fl.Decide(write, "desk", map[string]any{"x": s, path: s}); d.Action != floor.Deny {
				t.Errorf("the protected path %q as the name of %q: %+v", path, s, d)
			}
		}
	})
}

// The longest command there is must not cost much more than its words.
func BenchmarkLongCommand(b *testing.B) {
	fl := floor.New(&floor.Options{Config: []string{"/a/b"}, State: "/s", Home: "/h", Bases: func(*tool.Definition, string) []string { return []string{b.TempDir()} }})
	var line strings.Builder
	line.WriteString("cd /; cd /usr; cd /etc; cd /tmp; cd /var; cd /usr/lib; cd /usr/bin; ")
	for i := range 10_000 {
		fmt.Fprintf(&line, "a/b%d ", i)
	}
	args := map[string]any{"command": line.String()}
	for b.Loop() {
		fl.Decide(terminal, "desk", args)
	}
}

func BenchmarkCallWithoutPaths(b *testing.B) {
	fl := floor.New(&floor.Options{Config: []string{"/a/b"}, State: "/s"})
	args := map[string]any{"q": "deploy", "n": json.Number("5")}
	for b.Loop() {
		fl.Decide(write, "desk", args)
	}
}
