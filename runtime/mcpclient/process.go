package mcpclient

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
)

const (
	// exitPatience is how long a process whose output has ended may take to exit by itself, so that errors can name how it
	// did, before it is stopped.
	exitPatience = 2 * time.Second
	// stderrTail is how many of the last lines of standard error are kept, stack traces among them; quotedLines is how many
	// of them an error text quotes.
	stderrTail, quotedLines = 40, 3
	// maxStderrLine bounds one line of standard error in the log.
	maxStderrLine = 4 << 10
)

// spawn starts the server's process in a group of its own.
func (s *session) spawn() error {
	o := s.p.opts
	env := procgroup.Environment(o.PassEnv, o.Env, os.LookupEnv)
	path, err := lookPath(o.Command[0], env)
	if err != nil {
		return err
	}
	if err := o.admit(path); err != nil {
		return err
	}
	cmd := &procgroup.Command{Path: path, Args: o.Command[1:], Dir: o.Dir, Env: append(env, o.viaEnv()...), WantStdin: true, Contain: true}
	box := o.Sandbox
	box.Level, box.StateDir = o.Isolation, o.StateDir
	if err := sandbox.Confine(cmd, &box); err != nil {
		return err
	}
	s.process, err = procgroup.Start(cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", o.Command[0], err)
	}
	layers := sandbox.Layers(s.process, o.Isolation)
	s.p.processLayers.Store(&layers)
	s.stderr = procgroup.Tail(stderrTail)
	s.loops.Go(s.drainStderr)
	s.line.carrier = newStdio(s.line, s.process.Stdin(), s.process.Stdout(), o.MaxMessageBytes)
	return nil
}

// lookPath finds a program as the server's environment sees it.
func lookPath(program string, env []string) (string, error) {
	if strings.ContainsRune(program, os.PathSeparator) {
		return program, nil
	}
	var dirs string
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = value
		}
	}
	for _, dir := range strings.Split(dirs, string(os.PathListSeparator)) {
		if dir == "" {
			continue
		}
		if path, err := exec.LookPath(dir + string(os.PathSeparator) + program); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("command %q was not found in PATH; install it, or give its full path", program)
}

// drainStderr passes the server's standard error to the log.
func (s *session) drainStderr() {
	defer s.p.said.Flush()
	r := bufio.NewReader(s.process.Stderr())
	for {
		text, over, err := readLine(r, maxStderrLine)
		if over != nil {
			text = over[:min(len(over), keptEnd)]
		}
		if len(text) > 0 {
			if _, err := io.WriteString(s.stderr, s.p.opts.Mask(string(text))+"\n"); err == nil {
				s.p.said.Printed(providerlog.FromStderr, text)
			}
		}
		if err != nil {
			return
		}
	}
}

// awaitExit waits a little for the process to end by itself.
func (s *session) awaitExit() {
	select {
	case <-s.process.Done():
	case <-time.After(exitPatience):
	}
}

// explain adds to an error how the process ended and what it wrote, if it did.
func (s *session) explain(err error) error {
	if s.process == nil {
		return err
	}
	if s.line.ctx.Err() != nil {
		s.awaitExit()
	}
	ended := ""
	select {
	case <-s.process.Done():
		ended = s.ending()
	default:
	}
	var said []string
	if ended != "" {
		said = append(said, ended)
	}
	if lines := procgroup.Telling(s.stderr.Lines(), quotedLines); len(lines) > 0 {
		said = append(said, "it wrote: "+strings.Join(lines, " | "))
	}
	if garbled := s.line.garbled.Load(); garbled != nil {
		said = append(said, fmt.Sprintf("on its output, where only JSON-RPC belongs, it wrote: %q", *garbled))
	}
	switch text := strings.Join(said, "; "); {
	case text == "":
		return err
	case ended != "":
		return fmt.Errorf("%w (%s)", err, text)
	default:
		return fmt.Errorf("%w; %s", err, text)
	}
}

// ending is how the process ended by itself; "" if it was stopped.
func (s *session) ending() string {
	exit := s.process.ExitState()
	switch {
	case exit.Stopped && (exit.Signal != "" || exit.Code == 0):
		return ""
	case exit.Signal != "" || exit.Code != 0:
		return exit.String()
	case s.line.protocol() == "":
		return "its process ended by itself with exit status 0; is it an MCP server over standard input and output?"
	default:
		return "its process ended by itself with exit status 0"
	}
}
