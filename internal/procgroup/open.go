package procgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// OpenProgram opens a program's file for reading, as [OpenRegular] does.
func OpenProgram(path string) (*os.File, error) {
	return OpenRegular(os.OpenFile, path, "no program: correct the path")
}

// OpenRegular opens a file for reading with open, which is [os.OpenFile] or that of an [os.Root]. What is no regular file is
// refused before anything is read from it, with refusal after what it is: a pipe would hold its opener until somebody writes.
func OpenRegular(open func(name string, flag int, perm fs.FileMode) (*os.File, error), name, refusal string) (*os.File, error) {
	f, err := open(name, os.O_RDONLY|Nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is a %s, %s", name, FileKind(info.Mode()), refusal)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// FileKind names what a path is.
func FileKind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}
