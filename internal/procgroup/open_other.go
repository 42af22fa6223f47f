//go:build !unix

package procgroup

const nonblock = 0
