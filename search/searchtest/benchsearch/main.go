// Command benchsearch prints the table of `make bench-search`: how well and how fast tools are found, on the judged sets
// in the folder that HERMESD_EVAL_DATA names. With -bench the table goes to standard error, and standard output gets the
// readings as go test -bench prints them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/hermesd/hermesd/search/searchtest"
)

func main() {
	bench := flag.Bool("bench", false, "print readings as go test -bench does")
	flag.Parse()
	table, readings := io.Writer(os.Stdout), io.Discard
	if *bench {
		table, readings = os.Stderr, os.Stdout
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := searchtest.RunTable(ctx, table, readings, os.Getenv(searchtest.DataEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "bench-search:", err)
		os.Exit(1)
	}
}
