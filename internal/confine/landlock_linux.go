package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights over files, by what they are good for (landlock(7)).
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// fileRights are those that a rule about a single file may name.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	firstRights = 1<<13 - 1 // all that the first version knows
)

// rights are what a version of Landlock can handle. Versions after the seventh change nothing of it.
func rights(version int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: firstRights}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// restrictFiles opens the spec's paths and closes all others. A program so restricted cannot trace one that is less so,
// and (from version 6 on) cannot send it signals.
func (s *Spec) restrictFiles() Layer {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return missing(LayerFiles, "the kernel has no Landlock (needs Linux 5.13 and landlock among lsm=): "+errno.Error())
	}
	attr := rights(int(version))
	if s.NoNetwork && version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if s.NoNetwork && version >= 6 {
		attr.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return missing(LayerFiles, "landlock_create_ruleset: "+errno.Error())
	}
	defer unix.Close(int(set)) //nolint:errcheck // it has been used, or the error is returned already
	open := 0
	for _, group := range []struct {
		paths  []string
		access uint64
	}{{s.Read, readRights}, {s.Write, attr.Handled_access_fs}} {
		for _, path := range group.paths {
			switch err := allow(int(set), path, group.access&attr.Handled_access_fs); {
			case err == nil:
				open++
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EBADFD),
				errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG):
				// It is not there, not to be reached (a program can see to that with links), or has no place in the file system (a pipe): nothing to open.
			default:
				return missing(LayerFiles, fmt.Sprintf("landlock rule for %s: %v", path, err))
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return missing(LayerFiles, "landlock_restrict_self: "+errno.Error())
	}
	return applied(LayerFiles, fmt.Sprintf("Landlock version %d, %d paths", version, open))
}

// allow adds a rule for a path and what is below it.
func allow(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // it names a path only
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileRights
	}
	rule := packed(access, int32(fd))
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// packed is a struct landlock_path_beneath_attr, which has no padding at its end: the kernel reads its 12 bytes only.
func packed(access uint64, fd int32) unix.LandlockPathBeneathAttr {
	return unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: fd}
}
