//go:build !linux

package serve

import "os"

// redirectStdout is not available here: only os.Stdout is redirected.
func redirectStdout(*os.File) bool { return false }
