package pluginhost

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// maxSeen bounds what an error repeats of what a program printed, in bytes.
const maxSeen = 200

// sighting is what was seen of a start that failed.
type sighting struct {
	path  string
	err   error           // what the start ended with
	file  io.ReaderAt     // the program; nil if it could not be opened
	first string          // the first line on stdout
	exit  *procgroup.Exit // nil if it did not exit by itself
	tail  []string        // the last lines on stderr

	confined bool // isolation may be why
}

// explain says in one line why a plugin did not start and what to do.
func (s *sighting) explain() error {
	reason := s.reason()
	if len(s.tail) > 0 {
		reason += "; the last it wrote to stderr: " + quote(strings.Join(procgroup.Telling(s.tail, quotedLines), " | "))
	}
	return &startError{path: s.path, reason: reason, cause: s.err}
}

// startError keeps the cause, which decides whether trying again may help, out of the text, which has said it better.
type startError struct {
	path, reason string
	cause        error
}

func (e *startError) Error() string { return e.path + ": " + e.reason }
func (e *startError) Unwrap() error { return e.cause }

func (s *sighting) reason() string {
	switch {
	case s.file == nil && errors.Is(s.err, fs.ErrNotExist):
		return "there is no such file: build or install the plugin, or correct its path"
	case errors.Is(s.err, fs.ErrPermission):
		return "hermesd may not execute it: chmod +x, and look at the rights of its folders and for a noexec mount"
	case errors.Is(s.err, fs.ErrNotExist):
		return "it exists, but its interpreter or dynamic loader does not: " + s.kind()
	case errors.Is(s.err, syscall.ENOEXEC):
		return "this machine cannot execute it: " + s.kind()
	case s.exit != nil:
		return s.ended()
	case s.first != "" && !looksLikeHandshake(s.first):
		return "it is not a plugin, or it prints before its handshake: the first line on stdout was " + quote(s.first)
	case errors.Is(s.err, context.DeadlineExceeded) && s.first == "":
		return "it did not say hello in time: either it is not a plugin, or it needs a longer start_timeout"
	case errors.Is(s.err, context.DeadlineExceeded):
		return "it said hello but did not answer in time: " + s.err.Error()
	default:
		return oneLine(s.err.Error())
	}
}

// ended explains an exit before the plugin was ready.
func (s *sighting) ended() string {
	reason := "it ended before it was ready (" + s.exit.String() + ")"
	tail := strings.Join(s.tail, "\n")
	switch {
	case strings.Contains(tail, "out of memory") || strings.Contains(tail, "heap limit"):
		reason += ": out of memory"
	case strings.Contains(tail, "panic: ") || strings.Contains(tail, "fatal error: "):
		reason += ": it panicked"
	case s.exit.Signal == "SIGKILL":
		reason += ": somebody killed it, most likely the kernel for want of memory (see dmesg)"
	case s.exit.Code == 127:
		reason += ": a program or library that it needs is missing"
	case s.confined && strings.Contains(strings.ToLower(tail), "permission denied"):
		reason += ": isolation may close what it needs; name that in allow_read or allow_write"
	}
	if s.first != "" && !looksLikeHandshake(s.first) {
		reason += "; it is not a plugin, or it prints before its handshake: the first line on stdout was " + quote(s.first)
	} else if s.first == "" && s.exit.Code == 0 {
		reason += " and printed no handshake: is it a plugin?"
	}
	return reason
}

// looksLikeHandshake reports whether a line has the form of go-plugin's: six or more fields, the first a number.
func looksLikeHandshake(line string) bool {
	return strings.HasPrefix(line, "1|") && strings.Count(line, "|") >= 4
}

// kind says what sort of file the program is, as far as its first bytes tell.
func (s *sighting) kind() string {
	var head [256]byte
	n, err := s.file.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "it cannot be read: " + err.Error()
	}
	here := runtime.GOOS + "/" + runtime.GOARCH
	switch b := head[:n]; {
	case n == 0:
		return "it is empty"
	case bytes.HasPrefix(b, []byte("#!")):
		line, _, _ := bytes.Cut(b, []byte("\n"))
		return "it is a script with the first line " + quote(string(line))
	case bytes.HasPrefix(b, []byte("MZ")):
		return "it is built for Windows, this machine is " + here
	case bytes.HasPrefix(b, []byte("\xcf\xfa\xed\xfe")), bytes.HasPrefix(b, []byte("\xca\xfe\xba\xbe")):
		return "it is built for macOS, this machine is " + here
	case bytes.HasPrefix(b, []byte(elf.ELFMAG)):
		return s.elfKind(here)
	case utf8.Valid(b):
		return "it is a text without a #! line"
	default:
		return "it is no executable of a known kind"
	}
}

func (s *sighting) elfKind(here string) string {
	f, err := elf.NewFile(s.file)
	if err != nil {
		return "its ELF header is damaged: " + err.Error()
	}
	machine := strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	if names := goNames[f.Machine]; names != "" {
		machine = names
	}
	if machine == runtime.GOARCH {
		return "it is built for this machine (" + here + ")"
	}
	return "it is built for another architecture (" + machine + "), this machine is " + here + ": build it for this one"
}

// goNames are the architectures for which Go has another name than ELF.
var goNames = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64", elf.EM_MIPS: "mips",
}

// quote repeats foreign text, bounded and without anything that could pose as the host's own words.
func quote(s string) string {
	if len(s) > maxSeen {
		s = "…" + s[len(s)-maxSeen:]
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(s, "\uFFFD"))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// readerAt is f as an io.ReaderAt, nil if f is nil.
func readerAt(f *os.File) io.ReaderAt {
	if f == nil {
		return nil
	}
	return f
}
