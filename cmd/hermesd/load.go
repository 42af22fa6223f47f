package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/runtime/config"
)

// path is the configuration file that this command goes by, and whether it was named.
func (c *cli) path() (path string, named bool) {
	if c.configPath != "" {
		return c.configPath, true
	}
	return config.DefaultPath(nil), false
}

// here is the environment of a command beside the daemon, which may have what this process lacks: secrets above all.
func here() *config.Environment {
	env := config.ProcessEnvironment()
	env.Partial = true
	return env
}

// read reads the configuration. A default file that is not there is an empty one.
func (c *cli) read(env *config.Environment) (*config.Config, config.Diagnostics) {
	path, named := c.path()
	var cfg *config.Config
	var diags config.Diagnostics
	if _, err := os.Stat(path); !named && errors.Is(err, os.ErrNotExist) {
		cfg, diags = config.Default(env)
	} else {
		cfg, diags = config.Load(path, env)
	}
	return cfg, withPolicy(cfg, diags)
}

// loadWhole reads the configuration as the daemon does, in whose place this process is: every value must be there.
func (c *cli) loadWhole() (*config.Config, error) {
	cfg, diags := c.read(nil)
	err := c.usable(diags)
	if err != nil {
		err = errors.Join(err, c.missingHere())
	}
	return cfg, err
}

// load reads the configuration for a command beside the daemon. Values that only the daemon can read may be missing, but those
// at the places that the command needs: [config.Unread.Within].
func (c *cli) load(needs ...string) (*config.Config, error) {
	cfg, diags := c.read(here())
	if err := c.usable(diags); err != nil {
		return nil, err
	}
	needs = append(needs, "state_dir")
	if c.socket == "" {
		needs = append(needs, "listen.admin")
	}
	return cfg, unreadable(cfg, needs...)
}

// usable prints what is wrong with the configuration.
func (c *cli) usable(diags config.Diagnostics) error {
	if len(diags.Items()) > 0 {
		if _, err := diags.WriteTo(c.err); err != nil {
			return err
		}
	}
	if diags.HasErrors() {
		path, _ := c.path()
		return fmt.Errorf("the configuration cannot be used; correct what is listed above and check it with: hermesd config check -c %s", path)
	}
	return nil
}

// bring says how a command gets what the daemon has.
const bring = "the daemon may have it: from the EnvironmentFile= or LoadCredential= of its unit, or because its user may read the file. " +
	"To give this command such a file of variables, too: set -a; . FILE; set +a"

// unreadable names the values that a command needs and cannot read.
func unreadable(cfg *config.Config, needs ...string) error {
	var lines []string
	for i := range cfg.Unread {
		if u := &cfg.Unread[i]; slices.ContainsFunc(needs, u.Within) {
			lines = append(lines, u.String())
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("%s; %s", strings.Join(lines, "\n"), bring)
}

// missingHere explains a configuration whose only faults are values that another process may be able to read; nil for others.
func (c *cli) missingHere() error {
	cfg, diags := c.read(here())
	if diags.HasErrors() || len(cfg.Unread) == 0 {
		return nil
	}
	return errors.New("nothing else is wrong than what this process cannot read; " + bring)
}
