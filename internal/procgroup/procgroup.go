// Package procgroup runs other people's programs so that nothing of them is left: neither when they end, nor when they are
// stopped, nor when the daemon itself is killed.
//
// Every program leads a process group of its own. The group goes when its leader goes. On Linux the kernel kills the leader
// when the daemon dies, and [Command.Contain] puts a small resident shim between the two, which also catches programs that
// left the group: as the first process of a PID namespace where the machine allows one, else as a subreaper.
package procgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/confine"
)

// LifelineEnv names the environment variable with the number of the lifeline's descriptor.
const LifelineEnv = "HERMESD_LIFELINE_FD"

// tailDrain is how long the pipes of an ended program can still be read: what it wrote is in them already, and only an
// escaped descendant keeps them open longer.
const tailDrain = time.Second

// Command says what to start. Its standard output and error are pipes that the caller drains.
type Command struct {
	Path string
	Name string   // argument 0; default Path
	Args []string // without the program's own name
	Dir  string   // "" means the daemon's
	Env  []string // the complete environment, see [Environment]

	// WantStdin makes standard input a pipe; otherwise it is null.
	WantStdin bool
	// ExtraFiles become the descriptors from 3 on. They stay the caller's.
	ExtraFiles []*os.File
	// Lifeline hands over the read end of a pipe that reaches its end when the daemon dies. Its number, the one after
	// ExtraFiles, is in the environment variable [LifelineEnv].
	Lifeline bool
	// Contain puts the shim between the daemon and the program, if [ShimMain] was called in this process and the machine
	// is Linux. See [Process.Containment].
	Contain bool

	// NoNetwork gives the program a network of its own without a way out, where the machine allows that. See
	// [Process.Networked].
	NoNetwork bool

	// Confine is what else to take from the program. It needs Contain, since the shim applies it; [Process.Layers] says
	// what became of it.
	Confine *confine.Spec
	// Groups makes a control group with the limits of Confine, where the machine allows that; nil makes none.
	Groups *confine.Groups

	noNamespace bool // as on a machine that allows none
}

// Containment says what catches the descendants of a program.
type Containment string

// The kinds of containment, from the weakest.
const (
	ContainedByGroup     Containment = "process group"           // a descendant that calls setsid escapes
	ContainedBySubreaper Containment = "subreaper shim"          // all of them, unless the shim itself is killed from outside
	ContainedByNamespace Containment = "PID namespace with shim" // all of them
)

// Exit is how a program ended.
type Exit struct {
	Code   int    // the exit status; -1 if a signal ended it
	Signal string // such as "SIGKILL"; "" if none
	// Stopped says that it ended after this side asked it to.
	Stopped bool
}

// String is for operators: "exit status 2", "killed by SIGKILL".
func (e Exit) String() string {
	if e.Signal != "" {
		return "killed by " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Process is a started program.
type Process struct {
	leader      *os.Process // the program, or the shim above it
	pid         int         // of the program
	containment Containment
	networked   bool
	layers      []confine.Layer
	group       *confine.Group // nil if there is none
	stdin       io.WriteCloser
	stdout      *os.File
	stderr      *os.File
	lifeline    *os.File // write end; closing it ends what listens to it
	status      *os.File // what the shim reports; nil without it

	done chan struct{}
	exit Exit

	asked sync.Once // to terminate

	mu       sync.Mutex
	stopping bool
	reaped   bool // the leader's number may be somebody else's from now on
}

// Start starts a command. Its error tells why the program could not be executed.
func Start(cmd *Command) (*Process, error) {
	if cmd.Path == "" {
		return nil, errors.New("start program: no path")
	}
	return start(cmd)
}

// PID is the program's process id as this process sees it.
func (p *Process) PID() int { return p.pid }

// Containment says what catches the program's descendants.
func (p *Process) Containment() Containment { return p.containment }

// Networked reports whether the program shares the machine's network.
func (p *Process) Networked() bool { return p.networked }

// Layers is what became of Command.Confine, measure by measure; nil without it.
func (p *Process) Layers() []confine.Layer { return p.layers }

// Stdin is nil unless Command.WantStdin was set.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout must be drained by the caller, who may close it. It ends at the latest a second after the program.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Stderr must be drained like Stdout.
func (p *Process) Stderr() io.ReadCloser { return p.stderr }

// Done is closed when the program has exited, its group has been killed and everything has been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitState is how the program ended; it is valid after Done.
func (p *Process) ExitState() Exit {
	<-p.done
	return p.exit
}

// Stop closes standard input, asks the group to terminate, kills it after grace, and returns when everything is reaped, at
// the latest 50 ms after grace. A grace of 0 kills at once. It may be called again, from any goroutine; the shortest grace
// counts.
func (p *Process) Stop(grace time.Duration) {
	if grace > 0 {
		p.asked.Do(p.ask)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
	}
	p.mark()
	p.kill()
	<-p.done
}

func (p *Process) ask() {
	p.mark()
	if p.stdin != nil {
		p.stdin.Close() //nolint:errcheck // the pipe may be closed or broken already; either is its end
	}
	p.terminate()
}

// mark notes that the program's end is wanted from now on.
func (p *Process) mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
}

// ended records how the program ended and lets go of what it held.
func (p *Process) ended(exit Exit) {
	p.mu.Lock()
	exit.Stopped = p.stopping
	p.mu.Unlock()
	p.exit = exit
	for _, f := range []*os.File{p.lifeline, p.status} {
		if f != nil {
			f.Close() //nolint:errcheck // nothing can be done about a pipe that does not close
		}
	}
	if p.stdin != nil {
		p.stdin.Close() //nolint:errcheck // as above
	}
	deadline := time.Now().Add(tailDrain)
	for _, f := range []*os.File{p.stdout, p.stderr} {
		f.SetReadDeadline(deadline) //nolint:errcheck // fails only if the caller has closed the pipe
	}
	close(p.done)
}

// pipes are the ends of a program's standard streams and of its lifeline.
type pipes struct {
	stdin, stdout, stderr, lifeline *os.File   // this side's
	child                           []*os.File // standard input, output, error: to be closed after the start
	lifelineRead                    *os.File   // likewise
}

func openPipes(wantStdin bool) (_ *pipes, err error) {
	p := &pipes{child: make([]*os.File, 3)}
	defer func() {
		if err != nil {
			p.closeAll()
		}
	}()
	if wantStdin {
		p.child[0], p.stdin, err = os.Pipe()
	} else {
		p.child[0], err = os.Open(os.DevNull)
	}
	if err != nil {
		return nil, err
	}
	if p.stdout, p.child[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stderr, p.child[2], err = os.Pipe(); err != nil {
		return nil, err
	}
	p.lifelineRead, p.lifeline, err = os.Pipe()
	return p, err
}

func (p *pipes) closeChild() { closeFiles(append(p.child, p.lifelineRead)...) }

func (p *pipes) closeAll() {
	p.closeChild()
	closeFiles(p.stdin, p.stdout, p.stderr, p.lifeline)
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close() //nolint:errcheck // pipe ends that nobody has written to
		}
	}
}
