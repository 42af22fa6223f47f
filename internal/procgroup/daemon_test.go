package procgroup_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// daemonEnv makes this test binary play a daemon that starts the script in its value, whose first
// letter says how: (a)lone, (c)ontained as well as possible, under the (s)ubreaper shim.
const daemonEnv = "PROCGROUP_TEST_DAEMON"

func playDaemon() {
	how := os.Getenv(daemonEnv)
	cmd := &procgroup.Command{Path: "/bin/sh", Args: []string{"-c", how[1:]}, Env: os.Environ(), Contain: how[0] != 'a', Lifeline: true}
	if how[0] == 's' {
		cmd = cmd.WithoutNamespace()
	}
	p, err := procgroup.Start(cmd)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	fmt.Print(line, p.Containment(), err, "\n")
	<-p.Done()
	os.Exit(0)
}

func TestNothingOutlivesAKilledDaemon(t *testing.T) {
	for name, how := range map[string]struct {
		mode   string
		script string
	}{
		"a program alone":                       {"a", "exec %s"},
		"a program under the shim":              {"c", "exec %s"},
		"its children under the shim":           {"c", "%s & %s & wait"},
		"its children in sessions of their own": {"c", "setsid %s & setsid setsid %s & wait"},
		"a program under the subreaper":         {"s", "exec %s"},
		"sessions under the subreaper":          {"s", "setsid %s & setsid setsid %s & wait"},
	} {
		t.Run(name, func(t *testing.T) {
			mark := markFile(t)
			script := "echo up; " + strings.ReplaceAll(how.script, "%s", hold(mark))
			daemon := exec.Command(os.Args[0])
			daemon.Env = append(os.Environ(), daemonEnv+"="+how.mode+script)
			out, err := daemon.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := daemon.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(out)
			if line, err := r.ReadString('\n'); line != "up\n" {
				t.Fatalf("first line %q, %v", line, err)
			}
			if !eventually(5*time.Second, func() bool { return len(holders(mark)) > 0 }) {
				t.Fatal("the program did not come up")
			}
			if err := daemon.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			gone(t, mark, time.Second)
			if err := daemon.Wait(); err == nil {
				t.Error("the daemon was not killed")
			}
		})
	}
}
