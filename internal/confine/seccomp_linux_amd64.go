package confine

import "golang.org/x/sys/unix"

const machine = unix.AUDIT_ARCH_X86_64

var machineRefused = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS_LOOKUP_DCOOKIE}
