// Command benchsearch prints the table of `make bench-search`: how well and how fast tools are found, on the judged sets
// in the folder that HERMESD_EVAL_DATA names.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/hermesd/hermesd/search/searchtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := searchtest.RunTable(ctx, os.Stdout, os.Getenv(searchtest.DataEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "bench-search:", err)
		os.Exit(1)
	}
}
