//go:build !linux

package confine

import "runtime"

// Apply can do nothing on this system and says so.
func (s *Spec) Apply(Surroundings) []Layer {
	return s.Unavailable("hermesd confines programs on Linux only, this is " + runtime.GOOS)
}
