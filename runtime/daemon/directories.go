package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
)

// directories are where the daemon keeps things.
type directories struct {
	state   string // survives restarts: database, plugins' own folders
	cache   string // may be deleted: what is known of providers' tools, the search index
	runtime string // goes with the daemon: plugins' sockets; made by renew

	groups *sandbox.Groups // the control groups that programs run in
}

// maxRuntimePath leaves room below the runtime directory for what go-plugin appends to it: a unix socket's path has 104
// to 108 bytes, depending on the system.
const maxRuntimePath = 60

// makeDirectories creates what is missing, for the daemon's user alone.
func makeDirectories(state string) (directories, error) {
	d := directories{groups: &sandbox.Groups{}, state: state, cache: filepath.Join(state, "cache"), runtime: filepath.Join(state, "run")}
	if len(d.runtime) > maxRuntimePath {
		// A folder named by the state directory, so that two daemons never share one.
		sum := sha256.Sum256([]byte(state))
		d.runtime = filepath.Join(os.TempDir(), fmt.Sprintf("hermesd-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
	}
	for _, dir := range []string{d.state, d.cache} {
		if err := makePrivate(dir); err != nil {
			return d, err
		}
	}
	return d, nil
}

func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w; create it for the daemon's user, or set state_dir", err)
	}
	return private(dir)
}

// renew makes the runtime directory, without what a killed daemon left in it. Only the daemon that holds the state
// directory's lock may call it.
func (d *directories) renew() error {
	if err := makePrivate(d.runtime); err != nil {
		return err
	}
	left, err := os.ReadDir(d.runtime)
	if err != nil {
		return fmt.Errorf("runtime directory: %w", err)
	}
	for _, e := range left {
		if err := os.RemoveAll(filepath.Join(d.runtime, e.Name())); err != nil {
			return fmt.Errorf("runtime directory: what an earlier daemon left behind cannot be removed: %w; remove it, or give it to the daemon's user", err)
		}
	}
	return nil
}
