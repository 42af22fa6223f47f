package pluginhost

import (
	"bufio"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// maxHandshake bounds the handshake line, in bytes (it holds a certificate of about 1 KiB), and the pieces in which longer
// lines are read.
const maxHandshake = 16 << 10

// stderrTail is how many of the last lines of stderr are kept to explain a failure, stack traces among them; quotedLines is
// how many of them a text quotes.
const stderrTail, quotedLines = 40, 3

// runner is go-plugin's view of the process (runner.Runner). It gives the library the handshake line and nothing more:
// what follows on stdout, and all of stderr, is read here, so that no line is too long and no pipe fills up.
type runner struct {
	command *procgroup.Command
	lines   func(stream string, line []byte) // gets what the process prints
	mask    func(string) string              // hides secrets in what is quoted of it
	sockets string                           // the folder of its socket; "" before the library has made it

	process *procgroup.Process
	hello   *io.PipeReader // the handshake line, then nothing until the process has ended
	tail    *procgroup.TailBuffer
	readers sync.WaitGroup

	mu      sync.Mutex
	first   string // the first line of stdout
	aborted bool
}

// Start implements runner.Runner.
func (r *runner) Start(context.Context) error {
	process, err := procgroup.Start(r.command)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.process = process
	aborted := r.aborted
	r.mu.Unlock()
	if aborted {
		process.Stop(0)
	}
	hello, send := io.Pipe()
	r.hello = hello
	r.readers.Go(func() { r.readStdout(process.Stdout(), send) })
	r.readers.Go(func() {
		defer process.Stderr().Close() //nolint:errcheck // read to its end
		eachLine(bufio.NewReaderSize(process.Stderr(), maxHandshake), func(line []byte) {
			io.WriteString(r.tail, r.mask(string(line))+"\n") //nolint:errcheck // never fails
			r.lines("stderr", line)
		})
	})
	return nil
}

func (r *runner) readStdout(stdout io.ReadCloser, send *io.PipeWriter) {
	defer stdout.Close() //nolint:errcheck // read to its end
	in := bufio.NewReaderSize(stdout, maxHandshake)
	line, err := in.ReadSlice('\n')
	r.mu.Lock()
	r.first = strings.TrimSpace(string(line))
	r.mu.Unlock()
	if err == nil || len(line) > 0 {
		io.WriteString(send, r.firstLine()+"\n") //nolint:errcheck // the library has given up: there is nobody to tell
	}
	eachLine(in, func(line []byte) { r.lines("stdout", line) })
	<-r.process.Done()
	send.Close() //nolint:errcheck // never fails
}

func (r *runner) firstLine() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

// lastWords is how long the end of a stopped process's output is waited for: what it wrote is read at once, and only
// something that escaped keeps the pipes open.
const lastWords = 20 * time.Millisecond

// stop ends the process within grace and waits until nothing reads its output any more.
func (r *runner) stop(grace time.Duration) {
	if r.process == nil {
		return
	}
	r.process.Stop(grace)
	read := make(chan struct{})
	go func() {
		r.readers.Wait()
		close(read)
	}()
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-read:
	case <-timer.C:
	}
	r.hello.Close()            //nolint:errcheck // never fails
	r.process.Stdout().Close() //nolint:errcheck // whatever escaped keeps the pipe open is not waited for
	r.process.Stderr().Close() //nolint:errcheck // likewise
	<-read
}

// abort kills a process that is still starting, so that the library's Start returns.
func (r *runner) abort() {
	r.mu.Lock()
	r.aborted = true
	process := r.process
	r.mu.Unlock()
	if process != nil {
		process.Stop(0)
	}
}

// settle waits until everything that an ended process printed has been read.
func (r *runner) settle() { r.readers.Wait() }

// Wait implements runner.AttachedRunner.
func (r *runner) Wait(context.Context) error {
	<-r.process.Done()
	return nil
}

// Kill implements runner.AttachedRunner. The library kills what did not start, whose last words say why.
func (r *runner) Kill(context.Context) error {
	if r.process == nil {
		return nil
	}
	r.process.Stop(0)
	r.hello.Close() //nolint:errcheck // never fails
	r.settle()
	return nil
}

// Stdout implements runner.Runner.
func (r *runner) Stdout() io.ReadCloser { return r.hello }

// Stderr implements runner.Runner. The library would drop lines of more than 64 KiB and lose the level of plain ones.
func (r *runner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements runner.Runner.
func (r *runner) Name() string { return r.command.Name }

// ID implements runner.AttachedRunner. It must not be "" once the process has run: the library would then leave its
// goroutines and its folder behind.
func (r *runner) ID() string {
	if r.process == nil {
		return "unstarted"
	}
	return strconv.Itoa(r.process.PID())
}

// Diagnose implements runner.Runner; explain does this better.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.AddrTranslator: both sides see the same file system.
func (r *runner) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin implements runner.AddrTranslator.
func (r *runner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// eachLine calls f with every line until the reader's end. A line longer than the reader's buffer comes in pieces, so that
// a program that never ends its line is read all the same.
func eachLine(in *bufio.Reader, f func(line []byte)) {
	for {
		line, err := in.ReadSlice('\n')
		if line = trimNewline(line); len(line) > 0 {
			f(line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

func trimNewline(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// socketRoot is the folder in which the socket's own folder is made: the wanted one unless a socket's path (108 bytes on
// Linux, 104 elsewhere) would not fit.
func socketRoot(dir string) string {
	const rest = len("/plugin-dir1234567890/plugin1234567890") + 1
	if len(dir)+rest > 104 {
		return os.TempDir()
	}
	return dir
}
