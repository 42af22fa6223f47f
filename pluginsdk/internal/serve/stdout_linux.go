package serve

import (
	"os"
	"syscall"
)

// redirectStdout makes descriptor 1 a copy of stderr, for code that writes to it below os.Stdout (C code, child
// processes). It cannot fail on two open descriptors; if it did, os.Stdout would still be redirected.
func redirectStdout(stderr *os.File) bool {
	return syscall.Dup3(int(stderr.Fd()), 1, 0) == nil
}
