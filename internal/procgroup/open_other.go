//go:build !unix

package procgroup

// Nonblock is nothing here: there are no named pipes in folders.
const Nonblock = 0
