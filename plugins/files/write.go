package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/hermesd/hermesd/pluginsdk"
)

type writeInput struct {
	Path     string `json:"path" jsonschema:"path of the file, relative to the working directory" minLength:"1" maxLength:"4096"`
	Content  string `json:"content" jsonschema:"the whole new content"`
	IfExists string `json:"if_exists,omitempty" jsonschema:"what to do when the file exists already" enum:"overwrite,fail" default:"overwrite"`
}

type writeOutput struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created" jsonschema:"the file did not exist before"`
}

func (f *files) write(ctx context.Context, in writeInput) (writeOutput, error) {
	if err := f.writable(ctx); err != nil {
		return writeOutput{}, err
	}
	at, err := f.space.resolve(in.Path)
	if err != nil {
		return writeOutput{}, err
	}
	if len(in.Content) > f.MaxWriteBytes {
		return writeOutput{}, pluginsdk.InvalidArgument("/content", "the content has %d bytes; the limit is %d", len(in.Content), f.MaxWriteBytes)
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	mode, exists, err := at.writeTarget()
	if err != nil {
		return writeOutput{}, err
	}
	if exists && in.IfExists == "fail" {
		return writeOutput{}, pluginsdk.InvalidArgument("/path", "%s exists already", at.show)
	}
	if dir := path.Dir(at.name); dir != "." {
		if err := at.root.MkdirAll(dir, 0o755); err != nil {
			return writeOutput{}, at.explain(err)
		}
	}
	if err := at.replace([]byte(in.Content), mode); err != nil {
		return writeOutput{}, err
	}
	return writeOutput{Path: at.show, Bytes: len(in.Content), Created: !exists}, nil
}

// writeTarget looks at what is there now. Only regular files are replaced: a link would be lost, not followed.
func (p place) writeTarget() (mode fs.FileMode, exists bool, err error) {
	info, err := p.root.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o644, false, nil
	case err != nil:
		return 0, false, p.explain(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, false, pluginsdk.InvalidArgument("/path", "%s is a link; write to the file that it points to", p.show)
	}
	return info.Mode().Perm(), true, p.regular(info)
}

// replace puts content in the file's place in one step: readers see the old file or the new one.
func (p place) replace(content []byte, mode fs.FileMode) (err error) {
	// Not made of the file's own name, which may be as long as names can be.
	temp := path.Join(path.Dir(p.name), ".files-"+rand.Text()+".tmp")
	file, err := p.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return p.explain(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(p.explain(err), p.discard(temp))
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode) // whatever the umask took away
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return p.root.Rename(temp, p.name)
}

// discard removes a temporary file that did not become the real one.
func (p place) discard(temp string) error {
	if err := p.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a temporary file is left behind: %w", err)
	}
	return nil
}
