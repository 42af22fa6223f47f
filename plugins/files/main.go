// Command files is the built-in plugin that lets agents work with files below one or several directories: read, write,
// patch, list and search. Nothing outside those directories can be reached, whatever the path says and whatever links lie
// about; special files are refused, and every answer is bounded.
package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hermesd/hermesd/pluginsdk"
)

type settings struct {
	Root          string            `json:"root,omitempty" jsonschema:"the directory that agents work in; relative paths start at the daemon's working directory"`
	Roots         map[string]string `json:"roots,omitempty" jsonschema:"several directories instead, each under a name that becomes the first part of its paths"`
	MaxReadBytes  int               `json:"max_read_bytes,omitempty" jsonschema:"most bytes that one read answers with" default:"262144" minimum:"1024" maximum:"8388608"`
	MaxWriteBytes int               `json:"max_write_bytes,omitempty" jsonschema:"largest file in bytes that is written or patched" default:"4194304" minimum:"1024" maximum:"8388608"`
	ReadOnly      bool              `json:"read_only,omitempty" jsonschema:"offer neither files_write nor files_patch"`
}

// files is the plugin's state: the configured directories.
type files struct {
	settings
	space workspace
	// writing makes read-modify-write one step: a patch must not undo a write that came between.
	writing sync.Mutex
}

func (f *files) configure(_ context.Context, s settings) error {
	dirs := maps.Clone(s.Roots)
	switch {
	case s.Root == "" && len(s.Roots) == 0:
		return &pluginsdk.ConfigError{Path: "/root", Summary: "no directory is given", Detail: `set root = "/some/directory"`}
	case s.Root != "" && len(s.Roots) > 0:
		return &pluginsdk.ConfigError{Path: "/roots", Summary: "both root and roots are given", Detail: "keep one of them"}
	case s.Root != "":
		dirs = map[string]string{"": s.Root}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if err := f.space.add(name, dirs[name]); err != nil {
			path := "/root"
			if name != "" {
				path = "/roots/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name) // RFC 6901
			}
			errs = append(errs, &pluginsdk.ConfigError{Path: path, Summary: err.Error(), Detail: "the directory must exist and be readable for the plugin"})
		}
	}
	f.settings = s
	return errors.Join(errs...)
}

// writable says why files cannot be changed, if so.
func (f *files) writable(context.Context) error {
	if f.ReadOnly {
		return errors.New("the operator configured the files as read-only")
	}
	return nil
}

func plugin() *pluginsdk.Plugin {
	f := &files{}
	reading := func(title string, keywords ...string) *pluginsdk.ToolOptions {
		return &pluginsdk.ToolOptions{Toolset: "files", Title: title, Coldness: pluginsdk.Core, ReadOnly: true, Idempotent: true,
			ParallelSafe: true, OpenWorld: new(false), Keywords: keywords}
	}
	changing := func(title string, idempotent bool, keywords ...string) *pluginsdk.ToolOptions {
		return &pluginsdk.ToolOptions{Toolset: "files", Title: title, Coldness: pluginsdk.Core, Destructive: new(true),
			Idempotent: idempotent, OpenWorld: new(false), Keywords: keywords, Available: f.writable}
	}
	return &pluginsdk.Plugin{
		Name: "files", Version: "1.0.0", License: "Apache-2.0",
		Description: "Reads, writes, patches, lists and searches files below configured directories.",
		Config:      pluginsdk.NewConfig(f.configure),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("files_read", "Read a text file, whole or some of its lines; images are shown. Paths are relative to the working directory.",
				f.read, reading("Read a file", "open", "cat", "view", "show", "load")),
			pluginsdk.NewTool("files_write", "Write a text file, replacing it as a whole; missing directories are made.",
				f.write, changing("Write a file", true, "create", "save", "overwrite")),
			pluginsdk.NewTool("files_patch", "Change parts of a text file by exact replacements: each old text must occur exactly once unless all is set. All edits are made or none.",
				f.patch, changing("Patch a file", false, "edit", "replace", "modify", "change")),
			pluginsdk.NewTool("files_list", "List a directory, also its subdirectories to a depth, optionally only names that match a glob.",
				f.list, reading("List a directory", "ls", "dir", "tree", "folder", "find")),
			pluginsdk.NewTool("files_search", "Search the lines of files for a text or a regular expression (RE2).",
				f.search, reading("Search in files", "grep", "find", "text", "content")),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
