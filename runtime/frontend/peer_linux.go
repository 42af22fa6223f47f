package frontend

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// The columns of /proc/net/tcp that are read (proc_pid_net(5)).
const (
	columnLocal  = 1
	columnRemote = 2
	columnState  = 3
	columnUID    = 7
	columnInode  = 9

	established = "01"
)

// socketOwner finds the user whose socket is bound to local and connected to remote, as the kernel lists it. Only an
// established socket that some process still holds counts: the kernel shows those without an owner as root's.
func socketOwner(local, remote netip.AddrPort) (found Peer, known bool) {
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if p, ok := findSocket(path, local, remote); ok {
			return p, true
		}
	}
	return Peer{}, false
}

func findSocket(path string, local, remote netip.AddrPort) (found Peer, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return Peer{}, false
	}
	defer f.Close()
	port := ":" + strings.ToUpper(hex.EncodeToString(binary.BigEndian.AppendUint16(nil, local.Port())))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if !strings.Contains(lines.Text(), port) { // most lines: spare them the parsing
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) <= columnInode || fields[columnState] != established || fields[columnInode] == "0" {
			continue
		}
		if procAddr(fields[columnLocal]) == local && procAddr(fields[columnRemote]) == remote {
			uid, err := strconv.Atoi(fields[columnUID])
			inode, inodeErr := strconv.ParseUint(fields[columnInode], 10, 64)
			return Peer{UID: uid, Socket: inode}, err == nil && inodeErr == nil
		}
	}
	return Peer{}, false
}

// procAddr parses an address of /proc/net/tcp: 32-bit words in the machine's byte order, then the port.
func procAddr(s string) netip.AddrPort {
	words, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(words)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n))
}
