package pluginhost

import (
	"io/fs"
	"syscall"
)

// executable is the path that executes the first extra file of a command. It works for scripts too, since the interpreter
// inherits the descriptor.
const executable = "/proc/self/fd/3"

// fileID changes whenever a file's content can have changed.
type fileID struct {
	device, inode                            uint64
	size                                     int64
	modified, modifiedNs, changed, changedNs int64
}

func identify(info fs.FileInfo) fileID {
	st := info.Sys().(*syscall.Stat_t)
	return fileID{
		device: uint64(st.Dev), inode: st.Ino, size: st.Size,
		modified: int64(st.Mtim.Sec), modifiedNs: int64(st.Mtim.Nsec),
		changed: int64(st.Ctim.Sec), changedNs: int64(st.Ctim.Nsec),
	}
}
