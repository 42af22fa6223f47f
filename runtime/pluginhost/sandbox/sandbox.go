// Package sandbox decides what a provider's program may do: it turns an isolation level and what the operator wrote in the
// provider's block into the orders that internal/procgroup's shim carries out. docs/design/isolation.md says why the rules
// are as they are.
//
// The rule about files is: the system's programs and libraries can be read, what the operator's block names can be used,
// the provider's own folder is its own, and everything else is closed, the daemon's state and configuration above all.
package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/internal/confine"
	"github.com/hermesd/hermesd/internal/procgroup"
)

// The levels of isolation.
const (
	None    = "none"    // a process group and a clean environment
	Default = "default" // besides, files, system calls, memory, and everything that it starts is caught
	Strict  = "strict"  // besides, no network, no capabilities, no namespaces, and no files but those that are named
)

// Valid reports whether level is one; "" is [Default].
func Valid(level string) bool { return slices.Contains([]string{"", None, Default, Strict}, level) }

// What a program gets where the block says nothing.
const (
	DefaultMemory = 2 << 30 // bytes of private memory: enough for Node.js, not enough to take the machine down
	descriptors   = 16 << 10
	processes     = 1024 // with threads
)

// keptByRoot are the capabilities that a daemon running as root leaves to a program at the default level (capabilities(7)):
// those over files, and to become somebody else. They give nothing that the rule about files does not allow.
var keptByRoot = []int{0 /* CHOWN */, 1 /* DAC_OVERRIDE */, 3 /* FOWNER */, 4 /* FSETID */, 5 /* KILL */, 6 /* SETGID */, 7 /* SETUID */, 10 /* NET_BIND_SERVICE */}

// Options say who is to be confined, and how. The command's path, arguments, folder and environment count, too.
type Options struct {
	Level string // "" is Default
	// Program is the file that is started, if the command's path is only a descriptor of it.
	Program string
	// Config is the block's configuration: the folders that it names are what the program works on.
	Config json.RawMessage
	// StateDir is the program's own folder; its folder for temporary files is made in it. "" gives it neither.
	StateDir string
	// Sockets is where the program makes its sockets ("": nowhere else).
	Sockets string
	// Read and Write are further files and folders, as the operator wrote them.
	Read, Write []string
	// Private are the daemon's own files and folders. What follows from the block by itself never opens them or what they
	// are in; only Read and Write can.
	Private []string
	// AdminSocket is hidden, so that no program can command the daemon.
	AdminSocket string
	// Groups makes control groups; nil makes none.
	Groups *Groups
	// Memory bounds its private memory in bytes; 0 is [DefaultMemory].
	Memory uint64
}

// Confine completes a command: what the shim shall take from the program, and a folder for temporary files of its own.
func Confine(cmd *procgroup.Command, o *Options) error {
	level := cmp.Or(o.Level, Default)
	if level == None {
		return nil
	}
	p := &plan{options: o, program: cmp.Or(o.Program, cmd.Path), dir: cmd.Dir, named: cmd.Dir != "", args: cmd.Args, env: cmd.Env, strict: level == Strict}
	if !p.named {
		var err error
		if p.dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	for _, own := range o.Private {
		if own != "" {
			p.own = append(p.own, own, resolved(own))
		}
	}
	if o.StateDir != "" {
		if err := p.ownTemporaryFolder(); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	cmd.Env = p.env
	cmd.Contain, cmd.NoNetwork, cmd.Confine, cmd.Groups = true, p.strict, p.spec(), o.Groups
	return nil
}

// plan is one command on its way to a specification.
type plan struct {
	options      *Options
	program, dir string
	named        bool // the operator chose dir
	args, env    []string
	strict       bool
	read, write  []string
	own          []string // of the daemon, as it is written and where its links lead
}

func (p *plan) spec() *confine.Spec {
	p.readable(systemFolders...)
	p.writable(devices...)
	p.writable(p.options.StateDir, p.options.Sockets)
	p.openProgram()
	if !p.strict {
		p.writable(sharedMemory)
		p.openNamed()
		p.openRunner()
	}
	p.readable(p.options.Read...)
	p.writable(p.options.Write...)
	p.closePlanted()
	spec := &confine.Spec{
		Limits: confine.Limits{Data: cmp.Or(p.options.Memory, DefaultMemory), Files: descriptors, Processes: processes},
		Files:  true, Read: distinct(p.read), Write: distinct(p.write), Hide: p.hidden(),
		Calls: true, NoNetwork: p.strict, NoNamespaces: p.strict, Capabilities: true,
	}
	if !p.strict {
		spec.KeepCapabilities = keptByRoot
	}
	return spec
}

func (p *plan) readable(paths ...string) { p.read = append(p.read, p.absolute(paths)...) }

func (p *plan) writable(paths ...string) { p.write = append(p.write, p.absolute(paths)...) }

func (p *plan) absolute(paths []string) []string {
	var list []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.dir, path)
		}
		list = append(list, filepath.Clean(path))
	}
	return list
}

// ownTemporaryFolder makes TMPDIR a folder of the program's own, since the system's belongs to everybody, unless the
// operator chose one.
func (p *plan) ownTemporaryFolder() error {
	if p.variable("TMPDIR") != "" {
		return nil
	}
	dir := filepath.Join(p.options.StateDir, "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	p.env = append(slices.Clip(p.env), "TMPDIR="+dir)
	return nil
}

func (p *plan) variable(name string) string {
	for _, e := range p.env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// hidden are the sockets that would undo the isolation.
func (p *plan) hidden() []string {
	var list []string
	if p.options.AdminSocket != "" {
		list = append(list, p.options.AdminSocket)
	}
	if !slices.Contains(containerTools, filepath.Base(p.program)) {
		list = append(list, containerSockets...)
	}
	return append(list, systemSockets...)
}

func distinct(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
