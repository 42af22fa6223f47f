package daemon

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"

	"github.com/hermesd/hermesd/policy/floor"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/tool"
)

// newFloor protects what belongs to the daemon of a configuration.
func newFloor(cfg *config.Config) *floor.Floor {
	opts := &floor.Options{
		State: absolute(cfg.StateDir), Free: filepath.Join(absolute(cfg.StateDir), pluginsFolder),
		Bases: func(d *tool.Definition, agent string) []string { return bases(cfg, d, agent) },
	}
	for _, f := range cfg.Files {
		f = absolute(f)
		opts.Config = append(opts.Config, f)
	}
	if len(cfg.Files) > 0 {
		dir := filepath.Dir(absolute(cfg.Files[0]))
		opts.Config = append(opts.Config, filepath.Join(dir, "conf.d"), filepath.Join(dir, lockFile))
	}
	for _, file := range cfg.SecretFiles {
		opts.Secrets = append(opts.Secrets, absolute(file))
	}
	opts.Secrets = append(opts.Secrets, absolute(cfg.Listen.Admin))
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		opts.Secrets = append(opts.Secrets, dir)
	}
	if cfg.Listen.TLS != nil {
		opts.Secrets = append(opts.Secrets, absolute(cfg.Listen.TLS.Key))
	}
	if home, err := os.UserHomeDir(); err == nil {
		opts.Home = home
	}
	return floor.New(opts)
}

// lockFile is where trusted providers are pinned, beside the configuration.
const lockFile = "hermesd.lock.hcl"

// pluginsFolder is the folder in the state directory that holds a folder for each plugin.
const pluginsFolder = "plugins"

// absolute makes a path absolute; one that cannot be made so stays as it is and matches nothing.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// bases are the directories that relative paths of a provider's calls start from, as far as the configuration shows them.
func bases(cfg *config.Config, d *tool.Definition, agent string) []string {
	var list []string
	if cwd, err := os.Getwd(); err == nil { // every process begins where the daemon is
		list = append(list, cwd)
	}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		if p.Name != d.SourceName {
			continue
		}
		own := filepath.Join(absolute(cfg.StateDir), pluginsFolder, p.Name)
		list = append(list, own, filepath.Join(own, "agents", "agent-"+url.PathEscape(agent)))
		var c struct {
			Root string `json:"root"`
		}
		if json.Unmarshal(p.Config, &c) == nil && c.Root != "" {
			list = append(list, absolute(c.Root))
		}
	}
	for i := range cfg.MCPServers {
		m := &cfg.MCPServers[i]
		if m.Name != d.SourceName || len(m.Command) == 0 {
			continue
		}
		if m.Cwd != "" {
			list = append(list, absolute(m.Cwd))
		}
		for _, arg := range m.Command[1:] { // file servers are told their folders
			if filepath.IsAbs(arg) {
				list = append(list, arg)
			}
		}
	}
	return list
}

// decodeObject decodes a JSON object as the pipeline does: numbers stay as they are written.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	err := d.Decode(&o)
	return o, err
}
