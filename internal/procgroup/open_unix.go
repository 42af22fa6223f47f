//go:build unix

package procgroup

import "syscall"

const nonblock = syscall.O_NONBLOCK
