package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/pluginsdk"
)

const (
	// maxVisited bounds what one walk looks at.
	maxVisited = 200_000
	// maxInDirectory bounds what is read of one directory, since its names are sorted in memory.
	maxInDirectory = 20_000
)

type entry = fs.DirEntry

// walk goes through directories in the order of names. Links are named but not followed.
type walk struct {
	depth     int  // levels below the top
	hidden    bool // also names that begin with a dot
	visited   int
	truncated bool // a bound was reached
}

// run calls visit for everything below top until it answers false. Directories below top that cannot be read are passed
// over.
func (w *walk) run(ctx context.Context, top place, visit func(place, entry) bool) error {
	_, err := w.directory(ctx, top, 1, visit)
	return err
}

func (w *walk) directory(ctx context.Context, dir place, level int, visit func(place, entry) bool) (goOn bool, err error) {
	entries, err := w.entries(dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if !w.hidden && strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if w.visited++; w.visited > maxVisited {
			w.truncated = true
			return false, nil
		}
		p := dir.child(e.Name())
		if !visit(p, e) {
			return false, nil
		}
		if !e.IsDir() || level >= w.depth {
			continue
		}
		goOn, err := w.directory(ctx, p, level+1, visit)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil: // unreadable, or gone meanwhile
			continue
		case !goOn:
			return false, nil
		}
	}
	return true, nil
}

// entries reads a directory, sorted by name.
func (w *walk) entries(dir place) ([]entry, error) {
	f, err := dir.root.OpenFile(dir.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, dir.explain(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, dir.explain(err)
	} else if !info.IsDir() {
		return nil, pluginsdk.InvalidArgument("/path", "%s is no directory", dir.show)
	}
	entries, err := f.ReadDir(maxInDirectory + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, dir.explain(err)
	}
	if len(entries) > maxInDirectory {
		entries, w.truncated = entries[:maxInDirectory], true
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}
