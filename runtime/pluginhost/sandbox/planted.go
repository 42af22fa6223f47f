package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// A program can put links in every folder that it may write to. The next start looks at the paths of its block again, so that a
// link there would open whatever it leads to. What follows keeps that from happening; where an operator means such a link,
// allow_read and allow_write with the path that it leads to say so.

// maxLinks bounds a chain of links, as the kernel does.
const maxLinks = 40

// closePlanted drops the paths on whose way lies a link in a folder that the program may write to. One that stays in that
// folder is open anyway.
func (p *plan) closePlanted() {
	var folders []string
	for _, path := range p.write {
		if isDir(path) {
			folders = append(folders, resolved(path))
		}
	}
	planted := func(path string) bool { return linkIn(folders, path, maxLinks) }
	p.read, p.write = slices.DeleteFunc(p.read, planted), slices.DeleteFunc(p.write, planted)
}

// linkIn reports whether the way to a path leads through a link that lies in or below one of the folders.
func linkIn(folders []string, path string, left int) bool {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		target, err := os.Readlink(at)
		if err != nil {
			continue
		}
		dir := resolved(filepath.Dir(at))
		if left == 0 || slices.ContainsFunc(folders, func(f string) bool { return within(f, dir) }) {
			return true
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		if linkIn(folders, target, left-1) {
			return true
		}
	}
	return false
}

// ownLink reports whether a path is a link that leads out of its folder, and that the program can have put there when nothing
// was at the path yet, for which its folder was open: a link of the daemon's user, since programs run as that.
func (p *plan) ownLink(path string) bool {
	info, err := os.Lstat(path)
	dir := filepath.Dir(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0 && ours(info) && p.opensForNew(dir) && !within(resolved(dir), resolved(path))
}

// resolved is where a path leads, or the path itself if that cannot be told.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
