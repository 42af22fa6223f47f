// Command streaming is an example of tools that take their time and of results that are big: progress and log lines while
// a call runs, an end at cancellation, and results that do not fit into one message, which the SDK sends in pieces.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
)

type primesInput struct {
	Below int `json:"below" jsonschema:"look for primes below this number" minimum:"2" maximum:"5000000"`
}

type primesOutput struct {
	Count   int `json:"count"`
	Largest int `json:"largest"`
}

// report is how often the sieve tells how far it is.
const report = 20

// primes counts primes, tells how far it is, and ends when nobody waits any more.
func primes(ctx context.Context, in primesInput) (primesOutput, error) {
	pluginsdk.Logger(ctx).Info("sieving", "below", in.Below)
	composite := make([]bool, in.Below)
	out, step := primesOutput{}, max(in.Below/report, 1)
	for n := 2; n < in.Below; n++ {
		if n%step == 0 {
			if err := ctx.Err(); err != nil {
				return primesOutput{}, err
			}
			pluginsdk.Progress(ctx, float64(n), float64(in.Below), fmt.Sprintf("%d primes so far", out.Count))
		}
		if composite[n] {
			continue
		}
		out.Count, out.Largest = out.Count+1, n
		for m := n * n; m < in.Below; m += n {
			composite[m] = true
		}
	}
	return out, nil
}

type countdownInput struct {
	Seconds int `json:"seconds" minimum:"1" maximum:"3600"`
}

// countdown waits. A tool that waits must wait for its context, too.
func countdown(ctx context.Context, in countdownInput) (string, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for left := in.Seconds; left > 0; left-- {
		pluginsdk.Progress(ctx, float64(in.Seconds-left), float64(in.Seconds), fmt.Sprintf("%d s left", left))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "lift-off", nil
}

type tableInput struct {
	Rows int `json:"rows" jsonschema:"how many rows" default:"1000" minimum:"1" maximum:"200000"`
}

// table makes a text of about 40 bytes a row. Nothing has to be done for the big ones: the SDK cuts them up.
func table(_ context.Context, in tableInput) (string, error) {
	var b strings.Builder
	for n := range in.Rows {
		fmt.Fprintf(&b, "%08d,%08x,%032b\n", n, n, n)
	}
	return b.String(), nil
}

func plugin() *pluginsdk.Plugin {
	options := func(examples ...any) *pluginsdk.ToolOptions {
		return &pluginsdk.ToolOptions{Toolset: "streaming", ReadOnly: true, ParallelSafe: true, OpenWorld: new(false), Examples: examples}
	}
	return &pluginsdk.Plugin{
		Name: "streaming", Version: "1.0.0", License: "Apache-2.0", Description: "Tools that take their time, and big results.",
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("count_primes", "Count the primes below a number.", primes, options(primesInput{Below: 100_000})),
			pluginsdk.NewTool("countdown", "Count seconds down.", countdown, options()),
			pluginsdk.NewTool("number_table", "Make a table of numbers in decimal, hexadecimal and binary.", table, options(tableInput{Rows: 5000})),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
