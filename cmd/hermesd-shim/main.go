// Hermesd-shim is the small process that hermesd puts above a plugin or server to catch whatever leaves the program's
// process group. hermesd finds it beside its own binary and otherwise starts itself in its place, which costs 20 MB more for
// every running program.
package main

import (
	"fmt"
	"os"

	"github.com/hermesd/hermesd/internal/procgroup"
)

func main() {
	procgroup.ShimMain()
	fmt.Fprintln(os.Stderr, "hermesd-shim is started by hermesd only")
	os.Exit(2)
}
