package pluginhost_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
)

// daemonEnv makes this test binary play a daemon: its value is the binary, the isolation, a folder and the modes
// of a plugin, separated by spaces. The folder holds its socket, too: a killed daemon removes nothing.
const daemonEnv = "PLUGINHOST_TEST_DAEMON"

func playDaemon() {
	words := strings.Fields(os.Getenv(daemonEnv))
	changed := make(chan struct{}, 1)
	p, err := pluginhost.New(&pluginhost.Options{
		Name: "mis", Path: words[0], Isolation: words[1], StateDir: filepath.Join(words[2], "s"), RuntimeDir: words[2], Args: words[3:], Env: map[string]string{markEnv: words[2]},
		OnChange: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		for range changed {
			if status := p.Offer().Status; status.State == provider.Ready || status.Reason != "" {
				fmt.Println(status.State, status.Reason)
			}
		}
	}()
	if err := p.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	os.Exit(0)
}

func TestNothingOutlivesAKilledDaemon(t *testing.T) {
	for name, tt := range map[string]struct {
		isolation string
		modes     string
		children  int // besides the plugin's own process
	}{
		"a plugin without isolation":               {"none", "", 0},
		"a plugin":                                 {"default", "", 0},
		"a plugin with a grandchild":               {"default", "grandchild", 1},
		"a plugin with a grandchild in a session":  {"default", "setsid-grandchild", 1},
		"a plugin that hears nothing and nobody":   {"default", "deaf setsid-grandchild eat-stderr", 1},
		"a plugin without network, and its family": {"strict", "setsid-grandchild", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark, err := os.MkdirTemp("", "host") // a socket's path must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(mark); err != nil { // a killed daemon's socket folder stays
					t.Error(err)
				}
			})
			daemon := exec.Command(os.Args[0])
			daemon.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s mark-%s %s", daemonEnv, testbin.Build(t, misbehave), tt.isolation, mark, mark, tt.modes))
			out, err := daemon.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := daemon.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if line != "ready \n" {
				t.Errorf("status %q, %v", line, err)
			}
			if n := len(processes(mark)); n < 1+tt.children {
				t.Errorf("%d processes", n)
			}
			if err := daemon.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Second, "nothing is left", func() bool { return len(processes(mark)) == 0 })
			if err := daemon.Wait(); err == nil {
				t.Error("the daemon was not killed")
			}
		})
	}
}
