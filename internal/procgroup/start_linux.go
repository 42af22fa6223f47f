package procgroup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermesd/hermesd/internal/confine"
)

// shimKill is how long the subreaper shim gets to kill everything below it before it is killed itself.
const shimKill = 500 * time.Millisecond

// start starts the program from a goroutine that keeps its thread until the program is reaped: the kernel sends the
// parent-death signal when the thread that started a child ends, not when its process does.
func start(cmd *Command) (*Process, error) {
	p := &Process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.launch(cmd)
		started <- err
		if err == nil {
			p.watch()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Process) launch(cmd *Command) error {
	ends, err := openPipes(cmd.WantStdin)
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer ends.closeChild()
	switch {
	case cmd.Contain && shimReady.Load():
		err = p.launchShim(cmd, ends)
	case cmd.Confine != nil:
		p.layers = cmd.Confine.Unavailable("nothing stands between hermesd and the program that could apply it")
		fallthrough
	default:
		err = p.launchDirect(cmd, ends)
	}
	if err != nil {
		ends.closeAll()
		return err
	}
	p.stdout, p.stderr, p.lifeline = ends.stdout, ends.stderr, ends.lifeline
	if ends.stdin != nil {
		p.stdin = ends.stdin
	}
	return nil
}

func (p *Process) launchDirect(cmd *Command, ends *pipes) error {
	files, env := append(ends.child, cmd.ExtraFiles...), cmd.Env
	if cmd.Lifeline {
		env = append(env[:len(env):len(env)], LifelineEnv+"="+strconv.Itoa(len(files)))
		files = append(files, ends.lifelineRead)
	}
	attr := &os.ProcAttr{
		Dir: cmd.Dir, Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: cmd.networkFlag()},
	}
	argv := append([]string{cmp.Or(cmd.Name, cmd.Path)}, cmd.Args...)
	leader, err := startLeader(cmd.Path, argv, attr)
	if refused(err) && attr.Sys.Cloneflags != 0 {
		attr.Sys.Cloneflags = 0
		leader, err = startLeader(cmd.Path, argv, attr)
	}
	if err != nil {
		return fmt.Errorf("start program: %w", err)
	}
	p.leader, p.pid, p.containment = leader, leader.Pid, ContainedByGroup
	p.networked = attr.Sys.Cloneflags == 0
	return nil
}

func (c *Command) networkFlag() uintptr {
	if c.NoNetwork && !c.noNamespace {
		return syscall.CLONE_NEWNET
	}
	return 0
}

// refused reports whether the machine does not allow a namespace. A program without execute permission looks alike.
func refused(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC)
}

// errShimEnded means that the shim said nothing before it ended.
var errShimEnded = errors.New("the shim ended early")

// launchShim starts the program under the shim. The small binary may be of another version than this process, after an
// upgrade under a running daemon; it then does not know its name and ends, and this executable takes its place.
func (p *Process) launchShim(cmd *Command, ends *pipes) error {
	shim := shimPath()
	err := p.launchUnder(shim, cmd, ends)
	if errors.Is(err, errShimEnded) && shim != selfPath {
		return p.launchUnder(selfPath, cmd, ends)
	}
	return err
}

// launchUnder starts the shim, in namespaces of its own if the machine allows that, and waits until the shim has started
// the program.
func (p *Process) launchUnder(shim string, cmd *Command, ends *pipes) error {
	reports, report, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer report.Close() //nolint:errcheck // the shim has its own
	files, env := append(ends.child, cmd.ExtraFiles...), cmd.Env
	if cmd.Lifeline {
		env = append(env[:len(env):len(env)], LifelineEnv+"="+strconv.Itoa(len(files)))
	}
	line := &shimLine{
		lifeline: len(files), report: len(files) + 1, pass: cmd.Lifeline, order: order{Confine: cmd.Confine},
		path: cmd.Path, name: cmp.Or(cmd.Name, cmd.Path), args: cmd.Args,
	}
	attr := &os.ProcAttr{
		Dir: cmd.Dir, Env: env, Files: append(files, ends.lifelineRead, report),
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	var grouped []confine.Layer
	if cmd.Confine != nil && cmd.Groups != nil {
		group, layer := cmd.Groups.New(cmd.Confine)
		p.group, grouped = group, []confine.Layer{layer}
		p.joinGroup(attr.Sys)
	}
	leader, err := (*os.Process)(nil), error(syscall.EPERM)
	if !cmd.noNamespace {
		p.containment = ContainedByNamespace
		attr.Sys.Pdeathsig = syscall.SIGKILL
		attr.Sys.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | cmd.networkFlag()
		line.order.Users = ownUsers(attr.Sys)
		leader, err = execShim(shim, line, attr)
	}
	if refused(err) {
		p.containment = ContainedBySubreaper
		// No parent-death signal: the shim sees the lifeline end and must live to kill what is below it.
		attr.Sys = &syscall.SysProcAttr{Setpgid: true}
		p.joinGroup(attr.Sys)
		line.order.Users = false
		leader, err = execShim(shim, line, attr)
	}
	if err != nil {
		reports.Close() //nolint:errcheck // nothing was written
		p.leaveGroup()
		return fmt.Errorf("start shim for %s: %w", cmd.Path, err)
	}
	report.Close() //nolint:errcheck // so that the shim's death is the pipe's end
	p.leader, p.status = leader, reports
	p.networked = attr.Sys.Cloneflags&syscall.CLONE_NEWNET == 0
	if err := p.awaitProgram(); err != nil {
		syscall.Kill(leader.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone, and is reaped below
		waitLeader(leader)                        //nolint:errcheck // reaped only for its own sake
		reports.Close()                           //nolint:errcheck // read to its end
		p.leaveGroup()
		return fmt.Errorf("start program: %w", err)
	}
	p.layers = append(p.layers, grouped...)
	return nil
}

func (p *Process) joinGroup(sys *syscall.SysProcAttr) {
	if p.group != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, p.group.FD()
	}
}

// leaveGroup takes the control group away after everything in it has ended.
func (p *Process) leaveGroup() {
	if p.group != nil {
		p.group.Remove() //nolint:errcheck // an empty group costs nothing, and the daemon's own goes with it
		p.group = nil
	}
}

// ownUsers adds a user namespace, which lets anybody but root have the other namespaces, and reports whether it did. Users
// and groups keep their numbers in it; the right to mount there is the shim's, which gives it up before the program starts.
func ownUsers(sys *syscall.SysProcAttr) bool {
	if os.Geteuid() == 0 {
		return false
	}
	sys.Cloneflags |= syscall.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	return true
}

func execShim(shim string, line *shimLine, attr *os.ProcAttr) (*os.Process, error) {
	argv, err := line.argv()
	if err != nil {
		return nil, err
	}
	return startLeader(shim, argv, attr)
}

// awaitProgram reads the shim's first reports and finds the program's process id as this side sees it.
func (p *Process) awaitProgram() error {
	word, err := readReport(p.status)
	if layers, ok := strings.CutPrefix(word, "layers "); ok && err == nil {
		if err := json.Unmarshal([]byte(layers), &p.layers); err != nil {
			return fmt.Errorf("the shim's report: %w", err)
		}
		word, err = readReport(p.status)
	}
	if err != nil {
		return errShimEnded
	}
	if failed, text, ok := parseFailure(word); ok {
		return &os.PathError{Op: "exec", Path: text, Err: failed}
	}
	p.pid = firstChild(p.leader.Pid)
	return nil
}

// firstChild is the one process that the shim started; the shim itself if that has ended already.
func firstChild(shim int) int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", shim))
	if err != nil {
		return shim
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			if pid, err := strconv.Atoi(fields[0]); err == nil {
				return pid
			}
		}
	}
	return shim
}

// watch waits for the leader without reaping it, so that its process id, which is also the group's, still belongs to it
// when the group is killed.
func (p *Process) watch() {
	for {
		err := unix.Waitid(unix.P_PID, p.leader.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	syscall.Kill(-p.leader.Pid, syscall.SIGKILL) //nolint:errcheck // no such group: nobody is left
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	state, err := waitLeader(p.leader)
	exit := Exit{Code: -1}
	if err == nil {
		exit = exitOf(state.Sys().(syscall.WaitStatus))
	}
	if p.status != nil {
		if word, err := readReport(p.status); err == nil {
			exit = parseExit(word)
		}
	}
	p.leaveGroup()
	p.ended(exit)
}

func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return Exit{Code: ws.ExitStatus()}
}

// terminate asks the program's group to end. The shim passes the signal on.
func (p *Process) terminate() {
	if p.status != nil {
		p.signal(p.leader.Pid, syscall.SIGTERM)
		return
	}
	p.signal(-p.leader.Pid, syscall.SIGTERM)
}

// kill ends everything. Killing the first process of a namespace ends the namespace; the subreaper shim must do it itself,
// since only it can find those that left the group.
func (p *Process) kill() {
	if p.containment != ContainedBySubreaper {
		p.signal(-p.leader.Pid, syscall.SIGKILL)
		return
	}
	p.signal(p.leader.Pid, syscall.SIGCONT)
	p.lifeline.Close() //nolint:errcheck // closing is the message
	timer := time.NewTimer(shimKill)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.signal(-p.leader.Pid, syscall.SIGKILL)
	}
}

// signal sends to a process or group as long as the leader's number cannot be somebody else's.
func (p *Process) signal(pid int, sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(pid, sig) //nolint:errcheck // it may have ended in the meantime
	}
}
