// Package importer turns the files in which other programs keep their MCP servers into hermesd's configuration: those of
// Claude Desktop, Claude Code, Cursor, VS Code and Hermes. Nothing is guessed in silence: what a file says that the
// configuration cannot, or that had to be changed, is noted; what looks like a secret becomes secret("env:NAME").
package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxFile bounds a file, in bytes.
const MaxFile = 4 << 20

// Format is whose file it is.
type Format string

// The formats.
const (
	MCPServers Format = "mcpServers" // Claude Desktop, Claude Code, Cursor and everybody who copied them
	VSCode     Format = "vscode"     // mcp.json, or the section "mcp" of settings.json
	Hermes     Format = "hermes"     // config.yaml
)

// File is what an import reads.
type File struct {
	Path string // absolute; its ending tells YAML from JSON
	Data []byte
}

// Options say what the importer may know of the machine. The zero value knows nothing.
type Options struct {
	// Home is the user's home folder, for ${userHome} and "~".
	Home string
	// Taken are names that servers may not have, because the configuration has them already.
	Taken []string
}

// Result is what became of the files.
type Result struct {
	Servers []Server
	// Variables are those of the environment that the configuration wants, with the values that the files had: all secrets,
	// and what the files took from the environment themselves.
	Variables []Variable
	Notes     []Note
}

// Variable is a value that does not stand in the configuration.
type Variable struct {
	Env   string // its name
	Value string // "" where the file did not have it either
}

// Note is something that was not carried over as it was.
type Note struct {
	File, Server, Key string // Server and Key are "" where it concerns the whole file, or server
	Text              string
}

func (n Note) String() string {
	parts := []string{n.File}
	for _, p := range []string{n.Server, n.Key} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ") + ": " + n.Text
}

// Server is one mcp_server block.
type Server struct {
	Name             string
	Command          []text
	URL              text
	Cwd              text
	Env, Headers     []pair
	Include, Exclude []string
	// Settings are further attributes, as HCL expressions.
	Settings []setting
	OAuth    []setting
	Disabled bool
}

type pair struct {
	name  string
	value text
}

type setting struct{ key, expression string }

// Read imports files, in order.
func Read(files []File, opts *Options) (*Result, error) {
	if opts == nil {
		opts = &Options{}
	}
	im := &importing{opts: opts, result: &Result{}, names: map[string]bool{}, vars: map[string]string{}}
	for _, name := range opts.Taken {
		im.names[name] = true
	}
	for i := range files {
		if err := im.file(&files[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", files[i].Path, err)
		}
	}
	if len(im.result.Servers) == 0 {
		return nil, errors.New("the files name no MCP server")
	}
	return im.result, nil
}

// importing is the state of one import.
type importing struct {
	opts   *Options
	result *Result
	names  map[string]bool   // of servers
	vars   map[string]string // environment variables to their values

	path   string // of the present file
	server string // as the file names it
	label  string // as the configuration names it
	vague  bool   // it has a placeholder that means nothing here
	inputs map[string]input
}

func (im *importing) file(f *File) error {
	if len(f.Data) > MaxFile {
		return fmt.Errorf("the file has more than %d bytes", MaxFile)
	}
	im.path, im.server, im.inputs = f.Path, "", map[string]input{}
	root, err := decode(f)
	if err != nil {
		return err
	}
	format, servers := recognise(root)
	switch format {
	case "":
		return errors.New("it has none of mcpServers (Claude, Cursor), servers (VS Code) and mcp_servers (Hermes)")
	case VSCode:
		im.readInputs(servers)
		servers, _ = servers.get("servers")
	}
	if servers.kind != object {
		return fmt.Errorf("the list of servers is no object but %s", servers.kind)
	}
	for _, m := range servers.members {
		im.block(format, m.name, m.value)
	}
	return nil
}

// recognise finds where the servers are. For VS Code that is what holds both servers and inputs.
func recognise(root value) (Format, value) {
	if v, ok := root.get("mcpServers"); ok {
		return MCPServers, v
	}
	if v, ok := root.get("mcp_servers"); ok {
		return Hermes, v
	}
	if _, ok := root.get("servers"); ok {
		return VSCode, root
	}
	if v, ok := root.get("mcp"); ok {
		if _, ok := v.get("servers"); ok {
			return VSCode, v
		}
	}
	return "", value{}
}

func (im *importing) note(key, format string, args ...any) {
	im.result.Notes = append(im.result.Notes, Note{File: im.path, Server: im.server, Key: key, Text: fmt.Sprintf(format, args...)})
}

// maxLabel is the longest label of a block, see the configuration's reference.
const maxLabel = 32

// labelFor makes a block's label of a server's name.
func (im *importing) labelFor(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	label := b.String()
	for _, c := range []string{"_", "-"} {
		for strings.Contains(label, c+c) {
			label = strings.ReplaceAll(label, c+c, c)
		}
	}
	if label = strings.Trim(label[:min(len(label), maxLabel)], "-_"); label == "" {
		label = "server"
	}
	free := label
	for n := 2; im.names[free]; n++ {
		suffix := fmt.Sprintf("-%d", n)
		free = label[:min(len(label), maxLabel-len(suffix))] + suffix
	}
	im.names[free] = true
	if free != name {
		im.note("", "named %q here; names have lower-case letters, digits, - and _, and are unique", free)
	}
	return free
}

// needs notes an environment variable that the configuration wants, and returns its name: another one if that has
// another value already.
func (im *importing) needs(name, value string) string {
	free := name
	for n := 1; ; n++ {
		held, taken := im.vars[free]
		if !taken {
			break
		}
		if held == value || value == "" {
			return free
		}
		if held == "" { // another file has the value
			i := slices.IndexFunc(im.result.Variables, func(s Variable) bool { return s.Env == free })
			im.result.Variables[i].Value, im.vars[free] = value, value
			return free
		}
		if free = envName(im.label, name); n > 1 {
			free = fmt.Sprintf("%s_%d", free, n)
		}
	}
	im.vars[free] = value
	im.result.Variables = append(im.result.Variables, Variable{free, value})
	return free
}

// envName makes a variable's name of some words.
func envName(words ...string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(strings.Join(words, "_")) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && s[len(s)-1] != '_' {
			b.WriteByte('_')
		}
	}
	name := strings.Trim(b.String(), "_")
	if name == "" || name[0] <= '9' {
		name = "MCP_" + name
	}
	return name
}
