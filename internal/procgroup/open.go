package procgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// OpenProgram opens a program's file for reading. What is no regular file is refused before anything is read from it: a
// pipe would hold its opener until somebody writes.
func OpenProgram(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is a %s, no program: correct the path", path, kindOf(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}
