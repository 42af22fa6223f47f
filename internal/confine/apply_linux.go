package confine

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Apply takes from the calling thread, which must be locked, what the spec says: a process that the thread forks has
// nothing of it. Limits and hidden paths are the whole process's. A layer that cannot be applied does not stop the others.
func (s *Spec) Apply(around Surroundings) []Layer {
	var layers []Layer
	add := func(wanted bool, layer func() Layer) {
		if wanted {
			layers = append(layers, layer())
		}
	}
	add(len(s.Hide) > 0, func() Layer { return s.hide(around) })
	layers = append(layers, s.Limits.apply(around)...)
	add(s.Capabilities, s.dropCapabilities)
	add(true, func() Layer {
		return outcome(LayerPrivileges, "", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	})
	add(s.Files, s.restrictFiles)
	add(s.Calls || s.NoNetwork, func() Layer { return s.filterCalls() })
	if s.NoNetwork {
		last := layers[len(layers)-1]
		layers = append(layers, Layer{LayerNetwork, last.Applied, "unix sockets only"})
		if !last.Applied {
			layers[len(layers)-1].Detail = last.Detail
		}
	}
	return layers
}

func (l *Limits) apply(around Surroundings) []Layer {
	// A core file would carry what the program knows to where the daemon runs.
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) //nolint:errcheck // lowering a limit cannot fail
	var layers []Layer
	if l.Data > 0 {
		layers = append(layers, outcome(LayerMemory, fmt.Sprintf("%d MiB of private memory (RLIMIT_DATA)", l.Data>>20), lower(unix.RLIMIT_DATA, l.Data)))
	}
	if l.Files > 0 {
		layers = append(layers, outcome(LayerDescriptors, fmt.Sprintf("%d (RLIMIT_NOFILE)", l.Files), lower(unix.RLIMIT_NOFILE, l.Files)))
	}
	if l.Processes > 0 {
		layers = append(layers, l.processes(around))
	}
	return layers
}

// processes limits their number where that binds the program and no other.
func (l *Limits) processes(around Surroundings) Layer {
	switch {
	case os.Getuid() == 0:
		return missing(LayerProcesses, "hermesd runs as root, whom RLIMIT_NPROC does not bind; run it as a user of its own")
	case !around.Users:
		return missing(LayerProcesses, "without a user namespace RLIMIT_NPROC would count the user's other processes")
	}
	return outcome(LayerProcesses, fmt.Sprintf("%d processes and threads (RLIMIT_NPROC in a user namespace)", l.Processes), lower(unix.RLIMIT_NPROC, l.Processes))
}

// lower sets a limit that is not above what the process has already. It goes through syscall, which would otherwise give
// programs the descriptor limit back that it found at the start.
func lower(resource int, limit uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	limit = min(limit, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit})
}

// hide covers paths in the process's own mount namespace.
func (s *Spec) hide(around Surroundings) Layer {
	if !around.Mounts {
		return missing(LayerHide, "there is no mount namespace of its own: sockets that the user may use can be connected to")
	}
	covered := 0
	for _, path := range s.Hide {
		info, err := os.Stat(path)
		if err != nil {
			continue // nothing there to hide
		}
		if info.IsDir() {
			err = unix.Mount("none", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0,size=4k")
		} else {
			err = unix.Mount(os.DevNull, path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return missing(LayerHide, fmt.Sprintf("covering %s: %v", path, err))
		}
		covered++
	}
	return applied(LayerHide, fmt.Sprintf("%d of %d are on this machine", covered, len(s.Hide)))
}
