//go:build !linux

package confine

import "runtime"

// Groups would make control groups, which only Linux has.
type Groups struct{}

// Group is one program's control group.
type Group struct{}

// FD is never asked for here.
func (*Group) FD() int { return -1 }

// Remove does nothing.
func (*Group) Remove() error { return nil }

// New makes none.
func (*Groups) New(*Spec) (*Group, Layer) {
	return nil, missing(LayerGroup, runtime.GOOS+" has no control groups")
}
