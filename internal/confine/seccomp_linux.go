package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The offsets into struct seccomp_data (seccomp(2)). The machines that have a filter are little-endian, so the lower half
// of an argument comes first.
const (
	dataNumber   = 0
	dataMachine  = 4
	dataArgument = 16 // of the first; each takes 8 bytes
)

// x32Bit marks the calls of x86-64's second ABI, which would go around a list of numbers.
const x32Bit = 0x40000000

// refused are the calls that no plugin makes: those that look into or change other processes, mount, load code into the
// kernel, set clocks, or reach parts of the kernel with a record of faults.
var refused = append([]uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_BPF,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_SETNS,
}, machineRefused...)

func (s *Spec) filterCalls() Layer {
	if machine == 0 {
		return missing(LayerCalls, "hermesd has no filter for "+runtime.GOARCH)
	}
	program := s.program()
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return missing(LayerCalls, "seccomp: "+errno.Error())
	}
	return applied(LayerCalls, fmt.Sprintf("seccomp, %d calls refused", len(s.numbers())))
}

func (s *Spec) numbers() []uint32 {
	if s.Calls {
		return refused
	}
	return nil
}

// program is the filter in the language of classic BPF. Calls of another machine's ABI are refused altogether.
func (s *Spec) program() []unix.SockFilter {
	refuse := ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	p := []unix.SockFilter{
		load(dataMachine), jumpIf(unix.BPF_JEQ, machine, 1, 0), refuse,
		load(dataNumber), jumpIf(unix.BPF_JGE, x32Bit, 0, 1), refuse,
	}
	for _, number := range s.numbers() {
		p = append(p, jumpIf(unix.BPF_JEQ, number, 0, 1), refuse)
	}
	if s.NoNamespaces {
		// clone3 keeps its flags where a filter cannot look; C libraries do without it when it is not there.
		p = append(p,
			jumpIf(unix.BPF_JEQ, unix.SYS_UNSHARE, 0, 1), refuse,
			jumpIf(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), ret(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
			jumpIf(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), load(dataArgument), jumpIf(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1), refuse, load(dataNumber),
		)
	}
	if s.NoNetwork {
		p = append(p, jumpIf(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 4), load(dataArgument), jumpIf(unix.BPF_JEQ, unix.AF_UNIX, 1, 0),
			ret(unix.SECCOMP_RET_ERRNO|uint32(unix.EACCES)), load(dataNumber))
	}
	return append(p, ret(unix.SECCOMP_RET_ALLOW))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jumpIf(cond uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | cond | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func ret(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}
