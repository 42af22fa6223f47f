package procgroup

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/internal/confine"
)

const (
	// shimFile is the name of the shim's own small binary.
	shimFile = "hermesd-shim"
	// shimName is argument 0 of the shim. Its number changes with the command line and the reports, so that a shim of
	// another version does not take itself for one.
	shimName = "hermesd-shim-2"
	// selfPath executes this executable again, even if its file has been replaced.
	selfPath = "/proc/self/exe"
)

// shimReady is set once ShimMain was called: only then can this executable be started again as the shim. It is the
// process's, as its executable is.
var shimReady atomic.Bool

// shimPath is what to execute as the shim: the small binary beside this one, which starts in 3 ms and holds 2.5 MB, else
// this executable itself, which may take ten times as much of both.
func shimPath() string {
	exe, err := os.Executable()
	if err != nil {
		return selfPath
	}
	beside := filepath.Join(filepath.Dir(exe), shimFile)
	if info, err := os.Stat(beside); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return selfPath
	}
	return beside
}

// shimLine is the shim's command line.
type shimLine struct {
	lifeline, report int  // descriptors of the shim
	pass             bool // the program gets the lifeline too
	order            order
	path, name       string
	args             []string
}

// order is what the shim shall do besides starting the program.
type order struct {
	Users   bool          `json:"users,omitempty"` // the shim is in a user namespace of its own
	Confine *confine.Spec `json:"confine,omitempty"`
}

func (l *shimLine) argv() ([]string, error) {
	order, err := json.Marshal(l.order)
	if err != nil {
		return nil, err
	}
	return append([]string{
		shimName, strconv.Itoa(l.lifeline), strconv.Itoa(l.report), strconv.FormatBool(l.pass), string(order), l.path, l.name,
	}, l.args...), nil
}

func parseShimLine(argv []string) (*shimLine, error) {
	if len(argv) < 7 {
		return nil, fmt.Errorf("want at least 7 arguments, have %d", len(argv))
	}
	lifeline, err := strconv.Atoi(argv[1])
	if err != nil {
		return nil, fmt.Errorf("lifeline: %w", err)
	}
	report, err := strconv.Atoi(argv[2])
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	line := &shimLine{lifeline: lifeline, report: report, pass: argv[3] == "true", path: argv[5], name: argv[6], args: argv[7:]}
	if err := json.Unmarshal([]byte(argv[4]), &line.order); err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	return line, nil
}

// ShimMain must be called first in main, and in TestMain of tests that use [Command.Contain]. It returns at once unless
// this process was started as the shim; then it never returns.
func ShimMain() {
	if len(os.Args) == 0 || os.Args[0] != shimName {
		shimReady.Store(true)
		return
	}
	line, err := parseShimLine(os.Args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is started by hermesd only: %v\n", shimName, err)
		syscall.Exit(2)
	}
	runShim(line)
}

// runShim starts the program, passes signals on, and ends with the program, when the daemon has died, or when the daemon
// closes the lifeline; in each case everything below it is killed and reaped first. It leaves by syscall.Exit: there is
// nothing to flush, and os.Exit waits a second under the race detector.
func runShim(line *shimLine) {
	runtime.LockOSThread() // the program's parent-death signal is bound to this thread
	report := os.NewFile(uintptr(line.report), "report")
	lifeline := os.NewFile(uintptr(line.lifeline), "lifeline")
	unix.CloseOnExec(line.report)
	unix.CloseOnExec(line.lifeline)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) //nolint:errcheck // cannot fail; Linux 3.4
	mounts := os.Getpid() == 1 && showOwnProcesses()
	if err := line.order.follow(report, mounts); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", shimName, err)
		syscall.Exit(126)
	}

	files := make([]uintptr, line.lifeline, line.lifeline+1)
	for fd := range files {
		files[fd] = uintptr(fd)
	}
	if line.pass {
		files = append(files, lifeline.Fd())
	}
	pid, err := syscall.ForkExec(line.path, append([]string{line.name}, line.args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		errno, _ := err.(syscall.Errno)
		fmt.Fprintf(report, "failed %d %s\n", int(errno), line.path)
		syscall.Exit(126)
	}
	letGo(line.lifeline)
	fmt.Fprintln(report, "started")

	go func() {
		for s := range signals {
			syscall.Kill(-pid, s.(syscall.Signal)) //nolint:errcheck // it may have ended
		}
	}()
	go func() {
		var b [1]byte
		lifeline.Read(b[:]) //nolint:errcheck // whatever ends the wait, the daemon has let go
		fmt.Fprintln(report, formatExit(Exit{Code: -1, Signal: "SIGKILL"}))
		sweep(pid)
	}()

	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			syscall.Exit(0) // no child is left
		case got == pid:
			fmt.Fprintln(report, formatExit(exitOf(ws)))
			sweep(pid)
		}
	}
}

// letGo drops the program's standard streams and extra files, so that they are the program's alone.
func letGo(n int) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	for fd := range n {
		if err == nil && fd < 3 {
			unix.Dup3(int(null.Fd()), fd, 0) //nolint:errcheck // at worst the descriptor stays open
			continue
		}
		unix.Close(fd) //nolint:errcheck // as above
	}
}

// follow takes from this thread, which forks the program, what the daemon wants taken, and reports what became of it.
func (o *order) follow(report io.Writer, mounts bool) error {
	if o.Users { // what the shim needed for its namespace is not the program's
		if err := confine.DropAmbient(); err != nil {
			return err
		}
	}
	if o.Confine == nil {
		return nil
	}
	layers, err := json.Marshal(o.Confine.Apply(confine.Surroundings{Mounts: mounts, Users: o.Users}))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(report, "layers %s\n", layers)
	return err
}

// showOwnProcesses makes /proc show the namespace's own processes and reports whether mounts here stay here. Without it
// /proc/self still works, so failing is no reason to stop.
func showOwnProcesses() (private bool) {
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") != nil {
		return false
	}
	unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") //nolint:errcheck // see above
	return true
}

// sweep kills the program's group and everything that was handed to the shim when its parent ended, until nothing is left;
// the main loop reaps.
func sweep(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL) //nolint:errcheck // the group may be empty
	for {
		lists, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			syscall.Exit(0)
		}
		found := false
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil {
				continue
			}
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil {
					found = true
					syscall.Kill(child, syscall.SIGKILL) //nolint:errcheck // it may have ended
				}
			}
		}
		if !found {
			syscall.Exit(0)
		}
		for { // reap what is dead, wait for one more
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != syscall.EINTR {
				break
			}
		}
	}
}

// readReport reads one line of the shim.
func readReport(f *os.File) (string, error) {
	line, err := bufio.NewReaderSize(oneByte{f}, 16).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// oneByte keeps a buffered reader from taking more than the line it is asked for.
type oneByte struct{ f *os.File }

func (r oneByte) Read(b []byte) (int, error) { return r.f.Read(b[:1]) }

func parseFailure(word string) (errno syscall.Errno, path string, ok bool) {
	rest, ok := strings.CutPrefix(word, "failed ")
	if !ok {
		return 0, "", false
	}
	number, path, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return syscall.EINVAL, path, true
	}
	return syscall.Errno(n), path, true
}

func formatExit(e Exit) string { return fmt.Sprintf("exit %d %s", e.Code, e.Signal) }

func parseExit(word string) Exit {
	exit := Exit{Code: -1}
	if n, err := fmt.Sscanf(word, "exit %d %s", &exit.Code, &exit.Signal); n == 0 && err != nil {
		return Exit{Code: -1}
	}
	return exit
}
