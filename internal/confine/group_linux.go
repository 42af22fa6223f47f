package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where every current system mounts the unified hierarchy (cgroups(7)).
const cgroupRoot = "/sys/fs/cgroup"

// controllers are those that a program's group needs.
var controllers = []string{"memory", "pids"}

// Groups makes control groups for programs below the daemon's own, if systemd delegated that (Delegate=yes). The zero value
// is ready; it looks at the machine when it is first asked.
type Groups struct {
	once sync.Once
	dir  string // in which groups are made
	why  string // there are none

	mu   sync.Mutex
	next int
}

// Group is one program's control group.
type Group struct {
	path   string
	folder *os.File
}

// FD is what clone3 needs to start a program in the group.
func (g *Group) FD() int { return int(g.folder.Fd()) }

// Remove ends whatever is still in the group and takes it away.
func (g *Group) Remove() error {
	err := g.folder.Close()
	// Linux 5.14; before, the shim has killed everything already.
	if killed := os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0); !errors.Is(killed, fs.ErrNotExist) {
		err = errors.Join(err, killed)
	}
	return errors.Join(err, os.Remove(g.path))
}

// New makes a group with the limits of a spec, and says what became of it. The group is nil where there is none.
func (g *Groups) New(s *Spec) (*Group, Layer) {
	g.once.Do(func() { g.dir, g.why = delegated(cgroupRoot, "/proc/self/cgroup", isDelegated) })
	if g.dir == "" {
		return nil, missing(LayerGroup, g.why)
	}
	g.mu.Lock()
	g.next++
	path := filepath.Join(g.dir, "program-"+strconv.Itoa(g.next))
	g.mu.Unlock()
	group, err := newGroup(path, s)
	if err != nil {
		return nil, missing(LayerGroup, err.Error())
	}
	return group, applied(LayerGroup, fmt.Sprintf("at most %d MiB and %d processes", s.Limits.Data>>20, s.Limits.Processes))
}

func newGroup(path string, s *Spec) (*Group, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for file, limit := range map[string]uint64{"memory.max": s.Limits.Data, "pids.max": s.Limits.Processes} {
		if limit == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(path, file), []byte(strconv.FormatUint(limit, 10)), 0o600); err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	folder, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &Group{path: path, folder: folder}, nil
}

// delegated returns the group in which groups for programs may be made, or why there is none. The daemon moves into a group
// of its own there, since a group with controllers for its children holds no processes itself.
func delegated(root, self string, marked func(dir string) bool) (dir, why string) {
	content, err := os.ReadFile(self)
	if err != nil {
		return "", err.Error()
	}
	own := ""
	for line := range strings.Lines(string(content)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = path
		}
	}
	if own == "" {
		return "", "this machine has no control groups of version 2"
	}
	dir = filepath.Join(root, own)
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return "", "this machine has control groups of version 1"
	}
	for _, c := range controllers {
		if !slices.Contains(strings.Fields(string(available)), c) {
			return "", "the controller " + c + " is not available to hermesd; use systemd with Delegate=yes"
		}
	}
	if !marked(dir) {
		return "", "hermesd's control group is not delegated to it; use systemd with Delegate=yes"
	}
	leaf := filepath.Join(dir, "daemon")
	if err := os.Mkdir(leaf, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err.Error()
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0o600); err != nil {
		return "", "moving hermesd into a group of its own: " + err.Error()
	}
	enable := "+" + strings.Join(controllers, " +")
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(enable), 0o600); err != nil {
		return "", "controllers for programs: " + err.Error()
	}
	return dir, ""
}

// isDelegated reports whether systemd marked the group so (since version 251).
func isDelegated(dir string) bool {
	var value [1]byte
	n, err := unix.Getxattr(dir, "user.delegate", value[:])
	return err == nil && n == 1 && value[0] == '1'
}
