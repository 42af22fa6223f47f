package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// stdioClient is a client that wrote what it knows about hermesd mcp into its own program: it counts answers.
type stdioClient struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Reader

	mu       sync.Mutex
	sent     int
	answers  map[int]int
	last     string // answer
	answered *sync.Cond
	ended    chan error // what ended its output
}

// stdioKinds are what clients start programs with.
var stdioKinds = map[string]func(t *testing.T) (ours, theirs *os.File, err error){
	"pipes": nil,
	"sockets": func(*testing.T) (*os.File, *os.File, error) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, nil, err
		}
		err = unix.SetNonblock(pair[0], true)
		return os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs"), err
	},
}

// stdio starts hermesd mcp with two pipes, or two sockets.
func (d *running) stdio(kind string) *stdioClient {
	d.t.Helper()
	c := &stdioClient{t: d.t, cmd: exec.Command(filepath.Join(bin, "hermesd"), "mcp", "-c", d.config), answers: map[int]int{}, ended: make(chan error, 1)}
	c.answered = sync.NewCond(&c.mu)
	var theirIn, theirOut, ourOut *os.File
	var err1, err2 error
	if pair := stdioKinds[kind]; pair != nil {
		c.in, theirIn, err1 = pair(d.t)
		ourOut, theirOut, err2 = pair(d.t)
	} else {
		theirIn, c.in, err1 = os.Pipe()
		ourOut, theirOut, err2 = os.Pipe()
	}
	if err1 != nil || err2 != nil {
		d.t.Fatal(err1, err2)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirIn, theirOut, d.out
	c.out = bufio.NewReaderSize(ourOut, 64<<10)
	if err := c.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	d.t.Cleanup(func() {
		c.in.Close()
		ourOut.Close()
		if c.cmd.ProcessState == nil {
			c.cmd.Process.Kill()
			c.cmd.Wait()
		}
	})
	return c
}

// listen counts answers until the output ends.
func (c *stdioClient) listen() {
	for {
		line, err := c.out.ReadString('\n')
		if err != nil || !json.Valid([]byte(line)) {
			if err == nil {
				err = fmt.Errorf("no JSON: %q", line)
			}
			c.ended <- err
			c.answered.Broadcast()
			return
		}
		var m struct{ ID *int }
		if err := json.Unmarshal([]byte(line), &m); err == nil && m.ID != nil {
			c.mu.Lock()
			c.answers[*m.ID]++
			c.last = line
			c.mu.Unlock()
			c.answered.Broadcast()
		}
	}
}

const statelessGreet = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"greet","arguments":{"name":"Ada"}}}` + "\n"

// ask sends a call.
func (c *stdioClient) ask() {
	c.mu.Lock()
	c.sent++
	id := c.sent
	c.mu.Unlock()
	if _, err := fmt.Fprintf(c.in, statelessGreet, id); err != nil {
		c.t.Errorf("ask: %v", err)
	}
}

// await waits until so many requests are answered, at least once.
func (c *stdioClient) await(n int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.answers) < n {
		select {
		case err := <-c.ended:
			c.t.Fatalf("its output ended after %d of %d answers: %v", len(c.answers), n, err)
		default:
			c.answered.Wait()
		}
	}
}

func (c *stdioClient) lastAnswer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func greeter(t *testing.T) *running {
	t.Helper()
	d := start(t, fmt.Sprintf("tools {\n  tool_search = false\n}\nplugin \"hello\" {\n  path = %q\n}\n", plugin("hello")))
	ready(t, d, "greet")
	return d
}

// killRounds is how often a daemon is killed.
func killRounds() int {
	if n, err := strconv.Atoi(os.Getenv("HERMESD_KILL_ROUNDS")); err == nil {
		return n
	}
	return 2
}

// finish is the end of what the client says. It hears the rest, and that hermesd mcp ends well.
func (c *stdioClient) finish() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Error(err)
	}
	if err := <-c.ended; err != io.EOF {
		c.t.Errorf("its output ended with %v", err)
	}
	for id := 1; id <= c.sent; id++ {
		if n := c.answers[id]; n != 1 {
			c.t.Errorf("request %d of %d was answered %d times", id, c.sent, n)
		}
	}
}

// A daemon that has its clients' streams dies in the middle of calls: each is answered exactly once, and each line is whole.
func TestAKilledDaemonLeavesNoCallUnansweredAndNoneTwice(t *testing.T) {
	for kind := range stdioKinds {
		t.Run(kind, func(t *testing.T) {
			d := greeter(t)
			for range killRounds() {
				c := d.stdio(kind)
				go c.listen()
				const callers = 16
				for range callers {
					c.ask()
				}
				until := callers + rand.IntN(2000)
				for n := 1; n < until; n++ { // as many are always open
					c.await(n)
					c.ask()
				}
				d.kill()
				for range callers {
					c.ask()
				}
				c.await(c.sent)
				d = launchConfig(t, d.dir, d.config)
				d.awaitReady()
				ready(t, d, "greet")
				c.await(c.sent)
				for next := true; next; next = strings.Contains(c.lastAnswer(), "not_sent") {
					c.ask()
					c.await(c.sent)
				}
				if last := c.lastAnswer(); !strings.Contains(last, "Ada") {
					t.Errorf("at the next daemon: %s", last)
				}
				c.finish()
			}
		})
	}
}

// A daemon that stops in peace answers what it was asked, and the client goes on at the next one.
func TestAStoppedDaemonAnswersAndTheNextOneGoesOn(t *testing.T) {
	for kind := range stdioKinds {
		t.Run(kind, func(t *testing.T) {
			d := greeter(t)
			c := d.stdio(kind)
			go c.listen()
			c.ask()
			c.await(1)
			for n := range 500 {
				c.ask()
				if n == 200 {
					if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.await(c.sent)
			<-d.ended
			c.ask()
			c.await(c.sent)
			if last := c.lastAnswer(); !strings.Contains(last, "not_sent") {
				t.Errorf("while no daemon runs: %s", last)
			}
			d = launchConfig(t, d.dir, d.config)
			d.awaitReady()
			ready(t, d, "greet")
			for next := true; next; next = strings.Contains(c.lastAnswer(), "not_sent") {
				c.ask()
				c.await(c.sent)
			}
			c.finish()
		})
	}
}

// A subscription of a client outlives a daemon that stops: the client is not told of its end.
func TestASubscriptionOutlivesAStoppedDaemon(t *testing.T) {
	d := greeter(t)
	c := d.stdio("pipes")
	listen := strings.NewReplacer("tools/call", "subscriptions/listen", `"name":"greet","arguments":{"name":"Ada"}`, `"notifications":{"toolsListChanged":true}`).
		Replace(fmt.Sprintf(statelessGreet, 7))
	if _, err := io.WriteString(c.in, listen); err != nil {
		t.Fatal(err)
	}
	if line, err := c.out.ReadString('\n'); err != nil || !strings.Contains(line, "acknowledged") {
		t.Fatalf("heard %q, %v", line, err)
	}
	d.stop()
	launchConfig(t, d.dir, d.config).awaitReady()
	if line, err := c.out.ReadString('\n'); err != nil || !strings.Contains(line, "list_changed") {
		t.Errorf("heard %q, %v", line, err)
	}
}

// When hermesd mcp is killed, its client hears the end of its server's output, although the daemon has it, too.
func TestAKilledRelayIsTheEndOfItsClientsServer(t *testing.T) {
	for kind := range stdioKinds {
		t.Run(kind, func(t *testing.T) {
			d := greeter(t)
			c := d.stdio(kind)
			go c.listen()
			c.ask()
			c.await(1)
			if err := c.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := <-c.ended; err != io.EOF {
				t.Errorf("its output ended with %v", err)
			}
		})
	}
}

// A daemon dies while it reads a message of almost 16 MiB, and while it reads one that is longer: each is answered once.
func TestADaemonDiesWithinALongMessage(t *testing.T) {
	d := greeter(t)
	for name, size := range map[string]int{"a long one": 15 << 20, "one that is too long": 17 << 20} {
		c := d.stdio("pipes")
		c.ask()
		if line, err := c.out.ReadString('\n'); err != nil || !strings.Contains(line, "Ada") {
			t.Fatalf("heard %q, %v", line, err)
		}
		long := strings.Replace(fmt.Sprintf(statelessGreet, 2), "Ada", strings.Repeat("x", size), 1)
		if _, err := io.WriteString(c.in, long[:size/2]); err != nil {
			t.Fatal(err)
		}
		d.kill()
		if _, err := io.WriteString(c.in, long[size/2:]); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{false: `"id":2,`, true: "16 MiB"}[size > 16<<20]
		if line, err := c.out.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("%s: heard %.300q, %v", name, line, err)
		}
		c.in.Close()
		if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
			t.Errorf("%s: heard more: %.300q, %v", name, rest, err)
		}
		d = launchConfig(t, d.dir, d.config)
		d.awaitReady()
		ready(t, d, "greet")
	}
}

// A client that reads nothing for a while hears everything when it reads again, and holds up nobody else.
func TestAClientThatReadsNothingForAWhile(t *testing.T) {
	for kind := range stdioKinds {
		t.Run(kind, func(t *testing.T) {
			d := greeter(t)
			c, other := d.stdio(kind), d.stdio(kind)
			for range 900 { // more than its output holds
				c.ask()
			}
			go other.listen()
			other.ask()
			other.await(1)
			other.finish()
			go c.listen()
			c.await(c.sent)
			c.finish()
		})
	}
}
