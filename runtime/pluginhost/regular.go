package pluginhost

import (
	"io"
	"os"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// readRegular reads at most n bytes of a file in a folder in which a plugin may have planted anything. Only what is a
// regular file once it is open is read; opening waits for nobody, and no link is followed out of the folder.
func readRegular(root *os.Root, name string, n int64) ([]byte, error) {
	f, err := procgroup.OpenRegular(root.OpenFile, name, "no regular file")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, n))
}
