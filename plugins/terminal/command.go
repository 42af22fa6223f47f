package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
)

const (
	// grace is what a command gets to clean up after it was asked to end.
	grace = time.Second
	// drain is how long the output of an ended command may take to arrive: only a descendant that left the process group
	// can hold it open.
	drain = 200 * time.Millisecond
)

// command is one shell command to be run.
type command struct {
	shell, line string
	dir         string
	env         []string
	limit       time.Duration
	keep        int // bytes of output
}

// ending is how a command ended.
type ending struct {
	output   string
	omitted  int64 // bytes before output that were not kept
	code     int   // -1 if a signal ended it
	status   string
	timedOut bool
	duration time.Duration
}

// run runs the command to its end, to its time limit or until ctx ends. Its whole process group is gone afterwards.
func (c *command) run(ctx context.Context) (*ending, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(c.shell, "-c", c.line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, in, in
	lead(cmd)
	began := time.Now()
	err = cmd.Start()
	in.Close() //nolint:errcheck // the command has its own
	if err != nil {
		return nil, err
	}
	tail := &tail{keep: c.keep}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(tail, out) //nolint:errcheck // ends with the command, or when its time is over
	}()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	e := &ending{}
	limit := time.NewTimer(c.limit)
	defer limit.Stop()
	select {
	case err = <-exited:
	case <-limit.C:
		e.timedOut = true
		err = end(cmd, exited)
	case <-ctx.Done():
		err = end(cmd, exited)
	}
	kill(cmd) // what it left in the background
	if err := out.SetReadDeadline(time.Now().Add(drain)); err != nil {
		out.Close() //nolint:errcheck // ends the reader
	}
	<-read
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	e.code, e.status, e.duration = cmd.ProcessState.ExitCode(), cmd.ProcessState.String(), time.Since(began)
	e.output, e.omitted = tail.text()
	return e, nil
}

// end asks the group to end, and kills it if it does not.
func end(cmd *exec.Cmd, exited <-chan error) error {
	terminate(cmd)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-exited:
		return err
	case <-timer.C:
	}
	kill(cmd)
	return <-exited
}

// result is an ending as agents read it: the output as it came, then how it ended. A command that failed by its exit
// status has run; one that was ended by its time limit has not.
func (e *ending) result(limit time.Duration) *pluginsdk.Result {
	status := "[" + e.status + "]"
	if e.timedOut {
		status = fmt.Sprintf("[ended after its time limit of %s; ask for more with timeout]", limit)
	}
	r := &pluginsdk.Result{IsError: e.timedOut, Structured: map[string]any{
		"exit_code": e.code, "timed_out": e.timedOut, "omitted_bytes": e.omitted, "duration_ms": e.duration.Milliseconds(),
	}}
	if e.omitted > 0 {
		r.Content = append(r.Content, pluginsdk.Text(fmt.Sprintf("[the first %d bytes of the output are left out]", e.omitted)))
	}
	if e.output != "" {
		r.Content = append(r.Content, pluginsdk.Text(e.output))
	}
	r.Content = append(r.Content, pluginsdk.Text(status))
	return r
}
