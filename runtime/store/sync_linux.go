package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData brings a file's content to the disk, but not its times.
func syncData(f *os.File) error { return os.NewSyscallError("fdatasync", unix.Fdatasync(int(f.Fd()))) }

// syncNames brings the names of a folder's files to the disk.
func syncNames(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) { // a file system that knows no such thing is believed
		err = nil
	}
	return errors.Join(err, d.Close())
}
