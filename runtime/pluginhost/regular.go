package pluginhost

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readRegular reads at most n bytes of a file in a folder in which a plugin may have planted anything. Only what is a
// regular file once it is open is read; opening waits for nobody, and no link is followed out of the folder.
func readRegular(root *os.Root, name string, n int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a %s, no regular file", name, fileKind(info.Mode()))
	}
	return io.ReadAll(io.LimitReader(f, n))
}

func fileKind(mode fs.FileMode) string {
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
