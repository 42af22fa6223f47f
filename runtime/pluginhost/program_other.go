//go:build !linux

package pluginhost

import (
	"io/fs"
	"time"
)

// executable is "" where an open descriptor cannot be executed: the path is, after it was hashed.
const executable = ""

// fileID changes when a file's content can have changed, as far as the portable attributes tell.
type fileID struct {
	size     int64
	modified time.Time
}

func identify(info fs.FileInfo) fileID { return fileID{info.Size(), info.ModTime()} }
