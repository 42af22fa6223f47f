// Package floor holds the rules that hermesd ships and that nothing overrides: no rule of the operator's, no grant and no
// mode. An agent must not change the daemon that watches it, nor read what would let it speak as somebody else.
//
// The rules look at what a call names: every argument that is a path, and every word of a shell command. They stop what is
// done in the open, and mistakes. What a program does once it runs they cannot see; that is for isolation, and for the
// users that programs run as.
package floor

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Action is what a floor rule wants with a call; "" is nothing.
type Action string

// The two actions.
const (
	Ask  Action = "ask"
	Deny Action = "deny"
)

// Decision is what the floor says about a call.
type Decision struct {
	Action Action
	Rule   string // the rule's name
	Reason string // for the human who is asked and the agent that is refused
}

// Options say what is to be protected. All paths are absolute; those that are "" or not there protect nothing yet.
type Options struct {
	// Config are the files and folders of the configuration, lock files among them: nobody writes to them.
	Config []string
	// State is the daemon's own directory: nobody writes to it or reads it, but for what lies in Free.
	State string
	// Free is the folder in State whose folders belong to plugins.
	Free string
	// Secrets are files and folders of tokens and keys: nobody reads or writes them.
	Secrets []string
	// Home is what ~ means in a command.
	Home string
	// Bases are the directories that relative paths of a call may start from. It may be nil.
	Bases func(d *tool.Definition, agent string) []string
}

// Floor decides about calls. It may be used from any goroutine.
type Floor struct {
	options   Options
	protected []place
	free      string
}

// place is a file or a folder with everything below it.
type place struct {
	path   string
	kind   string
	secret bool // not to be read either
}

// The rules' names.
const (
	RuleConfig  = "floor: the daemon's configuration"
	RuleState   = "floor: the daemon's state"
	RuleSecrets = "floor: tokens and keys"
	RuleInstall = "floor: installing an MCP server"
)

var reasons = map[string]string{
	RuleConfig:  "no tool may change the configuration of the daemon that watches it; ask the operator to do it",
	RuleState:   "no tool may touch the files of the daemon that watches it",
	RuleSecrets: "no tool may touch the tokens and keys of the daemon",
	RuleInstall: "a new MCP server may run any program on this machine",
}

// New makes a floor.
func New(opts *Options) *Floor {
	f := &Floor{options: *opts}
	add := func(rule string, secret bool, paths ...string) {
		for _, p := range paths {
			if p != "" {
				f.protected = append(f.protected, place{resolve(p), rule, secret})
			}
		}
	}
	add(RuleSecrets, true, opts.Secrets...)
	add(RuleState, true, opts.State)
	add(RuleConfig, false, opts.Config...)
	if opts.Free != "" {
		f.free = resolve(opts.Free)
	}
	return f
}

// Rules lists the floor's rules, for `hermesd policy explain`.
func Rules() []string { return []string{RuleSecrets, RuleState, RuleConfig, RuleInstall} }

// Decide says what the floor wants with a call. args are the decoded arguments.
func (f *Floor) Decide(d *tool.Definition, agent string, args map[string]any) Decision {
	c := check{floor: f, definition: d, agent: agent, writes: d.Source != tool.SourceBuiltin || !d.Annotations.IsReadOnly(), removes: removes.MatchString(d.Name)}
	c.object("", args, 0)
	if c.found == "" && installs(d, args) {
		c.found = RuleInstall
	}
	switch c.found {
	case "":
		return Decision{}
	case RuleInstall:
		return Decision{Ask, c.found, reasons[c.found]}
	default:
		return Decision{Deny, c.found, reasons[c.found]}
	}
}

// removes recognises the tools that take a whole folder away, and so what is protected below it.
var removes = regexp.MustCompile(`(?i)(^|[_-])(move|rename|delete|remove|rm|mv|trash|chmod|chown)([_-]|$)`)

// installs reports whether a call adds an MCP server.
func installs(d *tool.Definition, args map[string]any) bool {
	if action, _ := args["action"].(string); d.Source == tool.SourceBuiltin && d.Name == "manage_connections" {
		return strings.EqualFold(action, "install")
	}
	for _, key := range commandKeys {
		if line, ok := args[key].(string); ok && installCommand.MatchString(line) {
			return true
		}
	}
	return false
}

var installCommand = regexp.MustCompile(`\bhermesd\b.*\b(import|mcp-server|plugin)\b.*\b(add|install)\b|\bhermesd\b.*\bimport\b`)

// hit names the rule that a path breaks; "" if none. The path is resolved. all says that whatever is below it goes, too.
func (c *check) hit(path string, all bool) string {
	for i := range c.floor.protected {
		p := &c.floor.protected[i]
		if !c.writes && !p.secret {
			continue
		}
		if within(path, p.path) && !c.floor.isFree(path) || all && within(p.path, path) {
			return p.kind
		}
	}
	return ""
}

// hitGlob is hit for a path with wildcards.
func (c *check) hitGlob(pattern string, all bool) string {
	for i := range c.floor.protected {
		p := &c.floor.protected[i]
		if !c.writes && !p.secret {
			continue
		}
		inside, above := globbed(pattern, p.path)
		if inside && !c.floor.isFree(literal(pattern)) || all && above {
			return p.kind
		}
	}
	return ""
}

// isFree reports whether a path lies in a plugin's own folder.
func (f *Floor) isFree(path string) bool {
	rel, err := filepath.Rel(f.free, path)
	return f.free != "" && err == nil && filepath.IsLocal(rel) && rel != "."
}

// within reports whether path is folder or below it.
func within(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}

// globbed reports whether a pattern can name something in path or below it, or something above it.
func globbed(pattern, path string) (inside, above bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, part := range want {
		switch {
		case part == "**":
			return true, true
		case i == len(have):
			return true, false // the rest of the pattern is below
		}
		if ok, err := filepath.Match(part, have[i]); err != nil || !ok {
			return false, false
		}
	}
	return len(want) == len(have), true
}

// literal is the folder before a pattern's first wildcard.
func literal(pattern string) string {
	parts := strings.Split(pattern, "/")
	n := slices.IndexFunc(parts, wild)
	if n < 0 {
		n = len(parts)
	}
	return strings.Join(parts[:n], "/")
}

func wild(s string) bool { return strings.ContainsAny(s, "*?[") }
