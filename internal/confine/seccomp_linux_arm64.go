package confine

import "golang.org/x/sys/unix"

const machine = unix.AUDIT_ARCH_AARCH64

var machineRefused = []uint32{unix.SYS_KEXEC_FILE_LOAD}
