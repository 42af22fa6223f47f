package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
)

// TestWhatABlockNamesIsOpened is the table of docs/design/isolation.md, rules 3 and 4. "~" is the home folder of the case, "-"
// before a path says that it must not be opened.
func TestWhatABlockNamesIsOpened(t *testing.T) {
	tests := map[string]struct {
		files   []string // made; a "/" at the end makes a folder
		links   map[string]string
		program string
		args    []string
		env     []string
		dir     string
		read    []string
		write   []string
	}{
		"a binary and what lies beside it": {files: []string{"app/tool", "app/lib/"}, program: "~/app/tool", read: []string{"~/app"}},
		"an installation with bin":         {files: []string{"v22/bin/node", "v22/lib/"}, program: "~/v22/bin/node", read: []string{"~/v22"}},
		"bin in the home folder":           {files: []string{"bin/tool", ".ssh/id"}, program: "~/bin/tool", read: []string{"~/bin", "-~", "-~/.ssh"}},
		"bin in a folder of the home folder that holds credentials": {
			files: []string{".cargo/bin/tool", ".cargo/credentials"}, program: "~/.cargo/bin/tool", read: []string{"~/.cargo/bin", "-~/.cargo"},
		},
		"a link into node_modules": {
			files: []string{"p/node_modules/server/dist/cli.js"}, links: map[string]string{"p/node_modules/.bin/server": "../server/dist/cli.js"},
			program: "~/p/node_modules/.bin/server", read: []string{"~/p/node_modules", "-~/p"},
		},
		"a script of a project": {
			files: []string{"x/node", "srv/package.json", "srv/dist/main.js", "srv/node_modules/"}, program: "~/x/node", args: []string{"~/srv/dist/main.js"},
			read: []string{"~/srv"}, write: []string{"-~/srv"},
		},
		"a script in the home folder": {files: []string{"x/node", "main.js"}, program: "~/x/node", args: []string{"~/main.js"}, read: []string{"~/main.js", "-~"}},
		"folders and files to work on": {
			files: []string{"x/a", "data/", "db.sqlite", "other/"}, program: "~/x/a", args: []string{"~/data", "--db=~/db.sqlite"}, env: []string{"OTHER=~/other"},
			write: []string{"~/data", "~/db.sqlite", "~/other", "-~"},
		},
		"a file that is not there yet":   {files: []string{"x/a", "memory/"}, program: "~/x/a", env: []string{"MEMORY=~/memory/new.json"}, write: []string{"~/memory"}},
		"a word that is a folder's name": {files: []string{"x/a", "serve/"}, program: "~/x/a", args: []string{"serve"}, dir: "~", write: []string{"-~/serve"}},
		"the system's folders":           {files: []string{"x/a"}, program: "~/x/a", args: []string{"/etc", "/usr/share"}, env: []string{"J=/usr/lib"}, write: []string{"-/etc", "-/usr/share", "-/usr/lib"}},
		"a runner's caches":              {files: []string{"x/npx", ".npm/"}, program: "~/x/npx", args: []string{"-y", "@x/server"}, write: []string{"~/.npm", "~/.cache", "-~"}},
		"another program's caches":       {files: []string{"x/a", ".npm/"}, program: "~/x/a", write: []string{"-~/.npm"}},
		"a link that the program can have put there": {
			files: []string{"x/a", "data/", ".ssh/id"}, links: map[string]string{"data/cache": "../.ssh", "data/lib.js": "../.ssh/id"},
			program: "~/x/a", args: []string{"~/data", "~/data/cache", "~/data/lib.js"},
			write: []string{"~/data", "-~/data/cache", "-~/.ssh"}, read: []string{"-~/data/lib.js", "-~/data/cache"},
		},
		"a path beyond a link that the program can have put there": {
			files: []string{"x/a", "data/", ".ssh/keys/id"}, links: map[string]string{"data/cache": "../.ssh"},
			program: "~/x/a", args: []string{"~/data", "~/data/cache/keys"}, write: []string{"~/data", "-~/data/cache/keys"},
		},
		"a link in the place of a file that was not there": {
			files: []string{"x/a", "app/", ".ssh/id"}, links: map[string]string{"app/new.db": "../.ssh"},
			program: "~/x/a", args: []string{"--db=~/app/new.db"}, write: []string{"-~/app/new.db", "-~/.ssh"},
		},
		"a link that stays in its folder": {
			files: []string{"x/a", "app/v2/"}, links: map[string]string{"app/current": "v2"}, program: "~/x/a", args: []string{"~/app/current"},
			write: []string{"~/app/current"},
		},
		"a link that leads to itself": {
			files: []string{"x/a", "app/"}, links: map[string]string{"app/loop": "loop"}, program: "~/x/a", args: []string{"~/app", "~/app/loop"},
			write: []string{"~/app", "-~/app/loop"},
		},
		"the operator's own link": {
			files: []string{"x/a", "disk/docs/"}, links: map[string]string{"docs": "disk/docs"}, program: "~/x/a", args: []string{"~/docs"},
			write: []string{"~/docs"},
		},
		"the folder that the block works in": {files: []string{"x/a", "w/"}, program: "~/x/a", dir: "~/w", write: []string{"~/w"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			at := func(s string) string { return strings.ReplaceAll(s, "~", home) }
			for _, f := range tt.files {
				path := filepath.Join(home, f)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(f, "/") {
					err = os.MkdirAll(path, 0o700)
				} else {
					err = os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for from, to := range tt.links {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, from)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, filepath.Join(home, from)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := &procgroup.Command{Path: at(tt.program), Dir: at(tt.dir), Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
			for _, a := range tt.args {
				cmd.Args = append(cmd.Args, at(a))
			}
			for _, e := range tt.env {
				cmd.Env = append(cmd.Env, at(e))
			}
			if err := sandbox.Confine(cmd, &sandbox.Options{}); err != nil {
				t.Fatal(err)
			}
			check := func(how string, list, want []string) {
				t.Helper()
				for _, w := range want {
					path, closed := strings.CutPrefix(at(w), "-")
					if slices.Contains(list, path) == closed {
						t.Errorf("%s %s: %v in %q", how, path, !closed, list)
					}
				}
			}
			check("read", cmd.Confine.Read, tt.read)
			check("write", cmd.Confine.Write, tt.write)
		})
	}
}
