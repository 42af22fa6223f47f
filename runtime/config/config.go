// Package config turns an operator's HCL into a typed [Config].
//
// [Load] reads one file (native syntax, or JSON syntax when its name ends in .json) and the *.hcl and *.hcl.json files of
// the folder conf.d beside it, checks all of it in one pass and answers with [Diagnostics] that name file, line and key. The
// structs of this package are the single description of what may be written: their tags give each key's name, default and
// range, their comments its meaning, and the decoder, [Config.Show] and the reference page all follow them.
package config

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/hermesd/hermesd/internal/redact"
)

// Config is everything an operator decides, with defaults filled in: what a file does not say has its default here.
type Config struct {
	// StateDir is the folder of the database, the plugin store and the lock file. The default is the first of
	// $STATE_DIRECTORY, $XDG_STATE_HOME/hermesd and ~/.local/state/hermesd that is known. A relative path starts at the
	// configuration file's folder.
	StateDir string `key:"state_dir" path:"true"`
	// ShutdownTimeout is how long stopping may take after SIGTERM: calls in flight may finish, and providers have their
	// stop_grace, as far as there is time left.
	ShutdownTimeout time.Duration `key:"shutdown_timeout" default:"10s" min:"0s" max:"10m"`
	// DefaultAction is what happens to a call that no rule matches.
	DefaultAction string `key:"default_action" default:"allow" in:"allow|ask|deny"`

	Log    Log    `key:"log"`
	Listen Listen `key:"listen"`
	Tools  Tools  `key:"tools"`
	// Guard comes before the agents, which inherit it.
	Guard      Guard       `key:"guard"`
	Agents     []Agent     `key:"agent"`
	Toolsets   []Toolset   `key:"toolset"`
	Plugins    []Plugin    `key:"plugin"`
	MCPServers []MCPServer `key:"mcp_server"`
	Hooks      []Hook      `key:"hook"`
	Rules      []Rule      `key:"rule"`
	Approvals  Approvals   `key:"approvals"`
	Audit      Audit       `key:"audit"`
	Embeddings *Embeddings `key:"embeddings"`

	// Files are the files that were read, in the order in which they were merged; the first one is the main file.
	Files []string
	// Secrets are the values that secret(…) resolved, and what a provider's env, pass_env and headers hold under a name that
	// says that it is secret, for masking wherever text leaves the daemon.
	Secrets []Secret
	// SecretFiles are the absolute paths of the files that secret("file:PATH") was asked for, also of those that cannot be
	// read by this process.
	SecretFiles []string
	// Unread are the keys that a partial [Environment] left out.
	Unread []Unread

	masker       *redact.Masker       // of Secrets; nil for a configuration that was not loaded
	files        map[string]*hcl.File // the sources, for diagnostics after loading
	configPlaces map[string]places    // where the keys of plugins' config blocks are written, by the plugin's name
}

// Secret is one value that must not be seen.
type Secret struct {
	// Ref is the argument of secret(…) such as "env:GITHUB_TOKEN"; empty for a text that was written literally, or computed
	// from a secret without containing it.
	Ref string
	// Value is the plain text; never empty. Values of fewer than [redact.MinLength] bytes are masked only where they are a
	// whole text.
	Value string
}

// Position is where a block starts, for messages to the operator.
type Position struct {
	File string
	Line int
}

// String is the position as editors take it.
func (p Position) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }
