// Package importer turns the files in which other programs keep their MCP servers into hermesd's configuration: those of
// Claude Desktop, Claude Code, Cursor, VS Code and Hermes. Nothing is guessed in silence: what a file says that the
// configuration cannot, or that had to be changed, is noted; what looks like a secret becomes secret("env:NAME"); a server
// that cannot work as it stands is written switched off, with the reason.
package importer

import (
	"errors"
	"fmt"
	"strings"
)

// What is read at most.
const (
	MaxFile      = 4 << 20 // bytes of a file
	MaxServers   = 1000    // of all files
	MaxVariables = 1000    // of the environment, of all files
)

// What a server may have at most; one that has more is left out.
const (
	maxValues = 1000
	maxText   = 16 << 10 // bytes; keys and certificates have fewer
)

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
	// LookupEnv finds a variable of the present environment, as os.LookupEnv does: a secret takes no name that has another
	// value there.
	LookupEnv func(name string) (string, bool)
	// Exists reports whether there is a file, which tells what relative paths start at.
	Exists func(path string) bool
}

func (o *Options) lookup(name string) (string, bool) {
	if o.LookupEnv == nil {
		return "", false
	}
	return o.LookupEnv(name)
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
	// Reasons are why it is switched off although the file did not say so.
	Reasons []string
	// Broken says that hermesd would refuse the block: it is written as a comment, with what stands for it.
	Broken bool

	file, title string // where it comes from, for notes
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
	im := &importing{opts: opts, result: &Result{}, names: map[string]bool{}, vars: map[string]string{}, ambient: map[string]bool{}}
	for _, name := range opts.Taken {
		im.names[name] = true
	}
	var sections []section
	for i := range files {
		found, err := sectionsOf(&files[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", files[i].Path, err)
		}
		sections = append(sections, found...)
	}
	count := 0
	for _, s := range sections {
		count += len(s.servers.members)
		im.findAmbient(s.servers)
	}
	if count > MaxServers {
		return nil, fmt.Errorf("the files name %d servers; at most %d are taken at once", count, MaxServers)
	}
	for _, s := range sections {
		im.read(s)
		if im.tooMany() {
			return nil, fmt.Errorf("%s: more than %d environment variables would be wanted; import fewer servers at once", s.path, MaxVariables)
		}
	}
	if len(im.result.Servers) == 0 {
		var paths []string
		for i := range files {
			paths = append(paths, files[i].Path)
		}
		said := append([]string{strings.Join(paths, ", ") + ": no MCP server is named that could be written"}, im.notes()...)
		return nil, errors.New(strings.Join(said, "\n"))
	}
	im.check()
	return im.result, nil
}

// importing is the state of one import.
type importing struct {
	opts   *Options
	result *Result
	names  map[string]bool   // of servers
	vars   map[string]string // environment variables to their values
	// ambient are variables that the files take from the environment: no secret of a file may have the name of one.
	ambient map[string]bool

	section section          // the present one
	inputs  map[string]input // of it
	server  string           // as the file names it
	label   string           // as the configuration names it
	block   *Server
	own     map[string]text // the variables that the present server is given
	ownStay bool            // references to those stay what they are: the program resolves them itself
}

// section is a list of servers in a file.
type section struct {
	path    string
	format  Format
	servers value
	inputs  value  // VS Code's
	project string // the folder that Claude Code keeps these servers for; "" for all folders
}

// sectionsOf reads a file and finds where its servers are.
func sectionsOf(f *File) ([]section, error) {
	if len(f.Data) > MaxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxFile)
	}
	root, err := decode(f)
	if err != nil {
		return nil, err
	}
	found := recognise(root)
	if len(found) == 0 {
		return nil, errors.New("it has none of mcpServers (Claude, Cursor), servers (VS Code) and mcp_servers (Hermes)")
	}
	for i := range found {
		found[i].path = f.Path
		if s := found[i].servers; s.kind != object {
			return nil, fmt.Errorf("the list of servers is no object but %s", s.kind)
		}
	}
	return found, nil
}

// recognise finds the lists of servers.
func recognise(root value) []section {
	var found []section
	if v, ok := root.get("mcpServers"); ok {
		found = append(found, section{format: MCPServers, servers: v})
	}
	projects, _ := root.get("projects")
	for _, p := range projects.members {
		if v, ok := p.value.get("mcpServers"); ok && len(v.members) > 0 {
			found = append(found, section{format: MCPServers, servers: v, project: p.name})
		}
	}
	if len(found) > 0 {
		return found
	}
	if v, ok := root.get("mcp_servers"); ok {
		return []section{{format: Hermes, servers: v}}
	}
	editor, _ := root.get("mcp")
	for _, v := range []value{root, editor} {
		if servers, ok := v.get("servers"); ok {
			inputs, _ := v.get("inputs")
			return []section{{format: VSCode, servers: servers, inputs: inputs}}
		}
	}
	return nil
}

func (im *importing) read(s section) {
	im.section, im.inputs = s, map[string]input{}
	im.readInputs(s.inputs)
	for _, m := range s.servers.members {
		if !im.tooMany() {
			im.one(m.name, m.value)
		}
	}
}

func (im *importing) note(key, format string, args ...any) {
	im.result.Notes = append(im.result.Notes, Note{File: im.section.path, Server: im.server, Key: key, Text: fmt.Sprintf(format, args...)})
}

// off switches the present block off, for a reason that the operator can mend.
func (im *importing) off(key, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	im.note(key, "%s; the block is switched off", reason)
	if key != "" {
		reason = key + ": " + reason
	}
	im.block.Disabled, im.block.Reasons = true, append(im.block.Reasons, reason)
}

func (im *importing) notes() []string {
	var list []string
	for _, n := range im.result.Notes {
		list = append(list, n.String())
	}
	return list
}
