package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
)

const (
	// maxStdout bounds what an exec hook prints, in bytes; one that prints more is killed.
	maxStdout = MaxAnswer
	// stderrLines are kept of standard error, for messages and errors.
	stderrLines = 20
	// blockStatus is the exit status by which a hook blocks; standard error is its message.
	blockStatus = 2
)

// Exec says which program is a hook.
type Exec struct {
	// Command is the program and its arguments. It reads the event on standard input and prints its answer.
	Command []string
	// Dir is where it runs; "" is the daemon's directory.
	Dir string
	// Env is its complete environment; nil is PATH, HOME, LANG and TZ of the daemon, and none of its secrets.
	Env []string
}

type execRunner struct {
	path string
	exec Exec
}

// NewExec finds the program. It starts nothing.
func NewExec(e *Exec) (Runner, error) {
	if len(e.Command) == 0 || e.Command[0] == "" {
		return nil, errors.New("hook: no program")
	}
	path, err := exec.LookPath(e.Command[0])
	if err == nil {
		path, err = filepath.Abs(path) // it may run in another directory
	}
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	r := &execRunner{path: path, exec: *e}
	if r.exec.Env == nil {
		r.exec.Env = procgroup.Environment(nil, nil, os.LookupEnv)
	}
	return r, nil
}

func (r *execRunner) Close() {}

// Run starts a process of its own for every event. Whatever happens, its whole process group is gone afterwards.
func (r *execRunner) Run(ctx context.Context, _ Event, payload json.RawMessage) (Answer, error) {
	p, err := procgroup.Start(&procgroup.Command{
		Path: r.path, Name: r.exec.Command[0], Args: r.exec.Command[1:], Dir: r.exec.Dir, Env: r.exec.Env, WantStdin: true,
	})
	if err != nil {
		return Answer{}, err
	}
	defer p.Stop(0)
	unwatch := context.AfterFunc(ctx, func() { p.Stop(0) })
	defer unwatch()

	var (
		streams sync.WaitGroup
		stdout  bytes.Buffer
		stderr  = procgroup.Tail(stderrLines)
	)
	streams.Go(func() {
		// A hook may answer without reading its input: a broken pipe is no failure.
		io.Copy(p.Stdin(), bytes.NewReader(payload)) //nolint:errcheck // as above
		p.Stdin().Close()                            //nolint:errcheck // as above
	})
	streams.Go(func() {
		io.Copy(&stdout, io.LimitReader(p.Stdout(), maxStdout+1)) //nolint:errcheck // ends with the process
		if stdout.Len() > maxStdout {
			p.Stop(0)
		}
	})
	streams.Go(func() { io.Copy(stderr, p.Stderr()) }) //nolint:errcheck // ends with the process
	<-p.Done()
	closeWith(p, &streams)

	switch exit := p.ExitState(); {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case stdout.Len() > maxStdout:
		return Answer{}, fmt.Errorf("it printed more than %d bytes and was killed", maxStdout)
	case exit.Code == blockStatus:
		return Answer{Action: Block, Message: clip(strings.Join(stderr.Lines(), "\n"))}, nil
	case exit.Code != 0:
		return Answer{}, fmt.Errorf("%s; its last words: %q", exit, clip(strings.Join(stderr.Lines(), "\n")))
	}
	return ParseAnswer(stdout.Bytes())
}

// closeWith waits for the streams of an ended process. What it wrote is read at once; only a descendant that left the
// group can hold them open, and is not waited for.
func closeWith(p *procgroup.Process, streams *sync.WaitGroup) {
	read := make(chan struct{})
	go func() { streams.Wait(); close(read) }()
	timer := time.NewTimer(streamGrace)
	defer timer.Stop()
	select {
	case <-read:
	case <-timer.C:
	}
	p.Stdout().Close() //nolint:errcheck // ends the readers
	p.Stderr().Close() //nolint:errcheck // as above
	<-read
}

// streamGrace is how long the output of an ended hook may take to arrive.
const streamGrace = 100 * time.Millisecond
