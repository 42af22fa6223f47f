package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
)

// workspace is what agents may reach: one directory, or several under names. Every access goes through [os.Root], in
// which neither ".." nor a link, not even one that is swapped in meanwhile, leads outside.
type workspace struct {
	roots map[string]*os.Root // by name; the only one has the name ""
}

func (w *workspace) add(name, dir string) error {
	if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
		return fmt.Errorf("%q cannot be the name of a directory", name)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	if w.roots == nil {
		w.roots = map[string]*os.Root{}
	}
	w.roots[name] = r
	return nil
}

// place is a path inside one of the roots.
type place struct {
	root *os.Root
	name string // slash-separated, clean, "." for the root itself
	show string // as agents write it
}

func (p place) child(name string) place {
	return place{root: p.root, name: path.Join(p.name, name), show: path.Join(p.show, name)}
}

// names are the roots' names if there are several.
func (w *workspace) names() []string {
	if w.roots[""] != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(w.roots))
}

// resolve finds the place that an agent's path means.
func (w *workspace) resolve(p string) (place, error) {
	if len(w.roots) == 0 {
		return place{}, pluginsdk.Errorf(pluginsdk.BadConfiguration, "no directory is configured; the operator must set root in the plugin's block")
	}
	if filepath.IsAbs(p) || path.IsAbs(p) {
		return place{}, pluginsdk.InvalidArgument("/path", "%q is absolute; paths are relative to the working directory, \".\" is the directory itself", p)
	}
	clean := path.Clean(filepath.ToSlash(p))
	if !filepath.IsLocal(filepath.FromSlash(clean)) || strings.ContainsRune(clean, 0) {
		return place{}, pluginsdk.InvalidArgument("/path", "%q leads outside of the working directory", p)
	}
	if r := w.roots[""]; r != nil {
		return place{root: r, name: clean, show: clean}, nil
	}
	first, rest, _ := strings.Cut(clean, "/")
	r := w.roots[first]
	if r == nil {
		return place{}, pluginsdk.InvalidArgument("/path", "%q must begin with one of the directories %s", p, strings.Join(w.names(), ", "))
	}
	return place{root: r, name: path.Clean(rest), show: clean}, nil
}

// tops are the places where a walk over path begins: one, or every root for "." where there are several.
func (w *workspace) tops(p string) ([]place, error) {
	names := w.names()
	if names == nil || path.Clean(filepath.ToSlash(p)) != "." {
		top, err := w.resolve(p)
		return []place{top}, err
	}
	var tops []place
	for _, name := range names {
		tops = append(tops, place{root: w.roots[name], name: ".", show: name})
	}
	return tops, nil
}

// openFile opens a regular file for reading. Opening a pipe could block and opening a device could do something, so that
// the kind is looked at first; it is looked at again once the file is open, since it may have been swapped.
func (p place) openFile() (*os.File, fs.FileInfo, error) {
	info, err := p.root.Stat(p.name)
	if err != nil {
		return nil, nil, p.explain(err)
	}
	if err := p.regular(info); err != nil {
		return nil, nil, err
	}
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, p.explain(err)
	}
	if info, err = f.Stat(); err == nil {
		err = p.regular(info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func (p place) regular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return pluginsdk.InvalidArgument("/path", "%s is a directory; use files_list", p.show)
	default:
		return pluginsdk.InvalidArgument("/path", "%s is no regular file but a %s", p.show, kind(mode))
	}
}

// kind names what a path is.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}

// explain turns an error of the file system into one that tells the model what to do, without the paths of the machine.
func (p place) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pluginsdk.InvalidArgument("/path", "%s does not exist; files_list shows what there is", p.show)
	case errors.Is(err, fs.ErrPermission):
		return pluginsdk.Errorf(pluginsdk.ToolFailed, "the plugin is not permitted to open %s", p.show)
	}
	var (
		at   *fs.PathError
		link *os.LinkError
	)
	if errors.As(err, &at) {
		err = at.Err
	} else if errors.As(err, &link) {
		err = link.Err
	}
	return pluginsdk.Errorf(pluginsdk.ToolFailed, "%s: %w", p.show, err)
}
