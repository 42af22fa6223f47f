package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// Environment is what a configuration may learn about the process and the machine. The zero value reads the process's own
// variables and files as a person's; a nil pointer stands for [ProcessEnvironment]. Tests replace its parts.
type Environment struct {
	// Lookup finds an environment variable; the default is os.LookupEnv.
	Lookup func(name string) (string, bool)
	// ReadFile reads a whole file; the default is bounded by MaxFileBytes.
	ReadFile func(path string) ([]byte, error)
	// ReadDir lists the names in a folder; the default reads the file system, and a folder that is missing is empty.
	ReadDir func(path string) ([]string, error)
	// Service says that the daemon runs as a system service rather than as a person: there is no implicit agent then.
	Service bool
	// Partial says that the daemon's own environment may have more, such as what its EnvironmentFile= sets: a key whose value
	// takes a variable or a file that cannot be read here is left out and listed in [Config.Unread]. It is an error otherwise.
	Partial bool
}

// MaxFileBytes bounds each file that a configuration consists of or reads.
const MaxFileBytes = 1 << 20

// ProcessEnvironment is the environment of this process. It counts as a system service when systemd's system manager
// started it: both managers set INVOCATION_ID, but only a person's has a runtime directory of the session.
func ProcessEnvironment() *Environment {
	_, invoked := os.LookupEnv("INVOCATION_ID")
	_, session := os.LookupEnv("XDG_RUNTIME_DIR")
	return &Environment{Service: invoked && !session}
}

// DefaultPath is where the configuration lies when nobody says: config.hcl in the first of $CONFIGURATION_DIRECTORY (set by
// systemd), $XDG_CONFIG_HOME/hermesd and ~/.config/hermesd that is known, else /etc/hermesd.
func DefaultPath(env *Environment) string {
	env = env.orProcess()
	dir := env.firstDir([]dirVar{{"CONFIGURATION_DIRECTORY", ""}, {"XDG_CONFIG_HOME", "hermesd"}, {"HOME", ".config/hermesd"}})
	if dir == "" {
		dir = "/etc/hermesd"
	}
	return filepath.Join(dir, "config.hcl")
}

func (e *Environment) orProcess() *Environment {
	if e == nil {
		e = ProcessEnvironment()
	}
	filled := *e
	if filled.Lookup == nil {
		filled.Lookup = os.LookupEnv
	}
	if filled.ReadFile == nil {
		filled.ReadFile = readBounded
	}
	if filled.ReadDir == nil {
		filled.ReadDir = readNames
	}
	return &filled
}

// dirVar is a variable that holds a folder (or several, as systemd writes them: the first counts) and a path below it.
type dirVar struct{ name, below string }

func (e *Environment) firstDir(vars []dirVar) string {
	for _, v := range vars {
		value, _ := e.Lookup(v.name)
		if list := filepath.SplitList(value); len(list) > 0 && filepath.IsAbs(list[0]) {
			return filepath.Join(list[0], v.below)
		}
	}
	return ""
}

// readBounded reads regular files only: opening a pipe would wait for its other end, perhaps for ever.
func readBounded(path string) ([]byte, error) {
	file, err := procgroup.OpenRegular(os.OpenFile, path, "no regular file")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxFileBytes {
		return nil, fmt.Errorf("%s is larger than %s", path, Size(MaxFileBytes))
	}
	return content, nil
}

func readNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	sort.Strings(names)
	return names, nil
}
