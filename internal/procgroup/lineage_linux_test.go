package procgroup_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
)

func below(t *testing.T, pid int) bool {
	t.Helper()
	yes, err := procgroup.Below(pid)
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

func TestDescendantsAreKnown(t *testing.T) {
	if below(t, os.Getpid()) || below(t, os.Getppid()) || below(t, 1) {
		t.Error("this process, its parent or the first one counts as started by this one")
	}
	// The shell's child is orphaned: it is the shim's then.
	p, err := procgroup.Start(&procgroup.Command{
		Path: "/bin/sh", Args: []string{"-c", `(setsid sleep 1000 & echo $!); read x`}, Env: os.Environ(), WantStdin: true, Contain: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	if _, err := bufio.NewReader(p.Stdout()).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if !below(t, p.PID()) {
		t.Error("a program that was started is not known")
	}
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("there is no ps here")
	}
	// It has its name only once the shell's child has become it.
	if !eventually(time.Second, func() bool { return orphanKnown(t) }) {
		t.Error("an orphan of a program is not known")
	}
}

func orphanKnown(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.TrimSpace(args) == "sleep 1000" {
			if yes, err := procgroup.Below(n); err == nil && yes {
				return true
			}
		}
	}
	return false
}

func TestAProcessThatIsGoneIsAnError(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if yes, err := procgroup.Below(cmd.Process.Pid); err == nil {
		t.Errorf("it counts as %t", yes)
	}
	if began := procgroup.Began(cmd.Process.Pid); began != 0 {
		t.Errorf("it began at %d", began)
	}
	own, parents := procgroup.Began(os.Getpid()), procgroup.Began(os.Getppid())
	if own == 0 || parents == 0 || own < parents || own != procgroup.Began(os.Getpid()) {
		t.Errorf("this process began at %d, its parent at %d", own, parents)
	}
}

func TestASocketIsFoundAtADescendant(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	if procgroup.HoldsSocket(inode) {
		t.Error("this process's own socket counts")
	}
	p, err := procgroup.Start(&procgroup.Command{
		Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & wait"}, Env: os.Environ(), ExtraFiles: []*os.File{f}, Contain: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(0)
	if !procgroup.HoldsSocket(inode) {
		t.Error("a descendant's socket is not found")
	}
}

// adoptEnv makes the test binary a process that adopts orphans; TestMain starts it.
const adoptEnv = "HERMESD_TEST_ADOPT"

func TestAnOrphanThatEscapedIsAdoptedAndReaped(t *testing.T) {
	if os.Getenv(adoptEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", t.Name(), "-test.v")
		cmd.Env = append(os.Environ(), adoptEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := procgroup.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	// No shim: the orphan leaves the group and its parent.
	p, err := procgroup.Start(&procgroup.Command{Path: "/bin/sh", Args: []string{"-c", "setsid sh -c 'echo $$; exec sleep 1000' & read x; exit 0"}, Env: os.Environ(), WantStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if <-p.Done(); p.ExitState().Code != 0 {
		t.Errorf("the program's own status was lost: %v", p.ExitState())
	}
	if !below(t, orphan) {
		t.Error("it is not known")
	}
	if err := syscall.Kill(orphan, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	for syscall.Kill(orphan, 0) == nil { // a zombie can still be signalled
		select {
		case <-deadline:
			t.Fatal("it was not reaped")
		default:
			runtime.Gosched()
		}
	}
}
