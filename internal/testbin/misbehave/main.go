// Misbehave is a plugin that breaks the rules on request, for the tests of the host. Its arguments name what it does wrong
// as a process (see modes); its tools do wrong when they are called (see tools.go).
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// realStdout and realStderr are kept from go-plugin, which puts pipes in their place.
var realStdout, realStderr = os.Stdout, os.Stderr

// modes are what goes wrong before the plugin serves. Other arguments are modes of the service (see service.go).
var modes = map[string]func(){
	"panic-at-start":    func() { panic("misbehave: panic at start") },
	"exit-at-start":     func() { fmt.Fprintln(os.Stderr, "cannot open the database"); os.Exit(3) },
	"exit-quietly":      func() { os.Exit(0) },
	"oom-at-start":      func() { kill(os.Getpid(), syscall.SIGKILL) },
	"talk-first":        func() { fmt.Println("Welcome to the plugin!") },
	"long-line-first":   func() { os.Stdout.Write(append(bytes.Repeat([]byte("x"), 1<<20), '\n')) },
	"silent":            func() { hang() },
	"stopped-at-start":  func() { kill(os.Getpid(), syscall.SIGSTOP) },
	"wrong-version":     func() { fmt.Println("1|9|unix|/nowhere|grpc"); hang() },
	"wrong-protocol":    func() { fmt.Println("1|1|unix|/nowhere|netrpc"); hang() },
	"no-server":         func() { fmt.Println("1|1|unix|/nowhere|grpc|"); hang() },
	"deaf":              func() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT) },
	"grandchild":        func() { spawn(false) },
	"setsid-grandchild": func() { spawn(true) },
	"eat-stderr":        func() { go flood(os.Stderr) },
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "grandchild-of" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Minute)
		return
	}
	for _, arg := range os.Args[1:] {
		if mode := modes[arg]; mode != nil {
			mode()
		}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: pb.ProtocolVersion, MagicCookieKey: pb.MagicCookieKey, MagicCookieValue: pb.MagicCookieValue,
		},
		Plugins: plugin.PluginSet{pb.PluginName: glue{}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(limit()), grpc.MaxSendMsgSize(64<<20))...)
		},
		Logger: hclog.NewNullLogger(),
	})
}

func limit() int {
	n, err := strconv.Atoi(os.Getenv(pb.MaxMessageEnv))
	if err != nil {
		return pb.MaxMessageBytes
	}
	return n
}

// glue registers the service with go-plugin.
type glue struct{ plugin.NetRPCUnsupportedPlugin }

func (glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterPluginServer(s, newService(os.Args[1:]))
	return nil
}

func (glue) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin is no client")
}

// hang never returns, and is no deadlock that the Go runtime would notice.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func is(modes []string, mode string) bool { return slices.Contains(modes, mode) }

func kill(pid int, sig syscall.Signal) {
	if err := syscall.Kill(pid, sig); err != nil {
		panic(err)
	}
}

// spawn starts a grandchild that keeps the pipes and ignores every polite signal. Its last argument, from the environment,
// is how a test finds it.
func spawn(session bool) {
	cmd := exec.Command("/proc/self/exe", "grandchild-of", os.Getenv("MISBEHAVE_MARK"))
	cmd.Stdout, cmd.Stderr = realStdout, realStderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

func flood(f *os.File) {
	line := append(bytes.Repeat([]byte("flood "), 20), '\n')
	for {
		if _, err := f.Write(line); err != nil {
			return
		}
	}
}
