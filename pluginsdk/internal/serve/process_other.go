//go:build !unix

package serve

// closeOnExec does nothing: descriptors are not inherited here unless asked for.
func closeOnExec(int) {}

// endGroup does nothing: there are no process groups here.
func endGroup() {}
