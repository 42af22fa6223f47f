//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and the group of the file that it is to replace.
func keepOwner(f *os.File, before fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	mine, ok := now.Sys().(*syscall.Stat_t)
	theirs, known := before.Sys().(*syscall.Stat_t)
	if !ok || !known || mine.Uid == theirs.Uid && mine.Gid == theirs.Gid {
		return nil
	}
	return f.Chown(int(theirs.Uid), int(theirs.Gid))
}
