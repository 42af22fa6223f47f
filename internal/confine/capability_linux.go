package confine

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// dropCapabilities takes the calling thread's capabilities and those that a later execve could give.
func (s *Spec) dropCapabilities() Layer {
	if err := DropAmbient(); err != nil {
		return missing(LayerCapabilities, "ambient set: "+err.Error())
	}
	var kept [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return missing(LayerCapabilities, "capget: "+err.Error())
	}
	held := have[0].Permitted != 0 || have[1].Permitted != 0
	// The bounding set first: changing it is itself a capability.
	for c := 0; c <= 63; c++ {
		if slices.Contains(s.KeepCapabilities, c) {
			kept[c/32].Permitted |= 1 << (c % 32) & have[c/32].Permitted
			continue
		}
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if err != nil {
			break // the kernel knows no more
		}
		if in == 1 && held {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
				return missing(LayerCapabilities, fmt.Sprintf("dropping capability %d: %v", c, err))
			}
		}
	}
	for i := range kept {
		kept[i].Effective = kept[i].Permitted
	}
	return outcome(LayerCapabilities, fmt.Sprintf("%d kept", len(s.KeepCapabilities)), unix.Capset(&header, &kept[0]))
}

// DropAmbient makes sure that the next program gets no capability for nothing.
func DropAmbient() error {
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}
