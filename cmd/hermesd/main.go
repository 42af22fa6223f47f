// Command hermesd is the daemon between AI agents and their tools, and the command line that speaks to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// version is set by the Makefile.
var version = "dev"

func main() {
	procgroup.ShimMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
