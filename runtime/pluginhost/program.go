package pluginhost

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

// maxProgram bounds a plugin's binary, in bytes: hashing it must end, whatever has been put in its place.
const maxProgram = 1 << 30

// program is the file that a plugin is started from. What is executed is what was hashed: the open descriptor, which a
// replaced or rewritten path cannot change in between.
type program struct {
	path   string // as the operator wrote it
	pinned string // the wanted digest; "" if any
	find   func() (path, pinned string, err error)
	trust  Trust

	mu     sync.Mutex
	known  fileID // of the file that digest belongs to
	digest string
}

// open opens the file and returns it with its path and digest. The digest is computed again only when the file's identity
// changed.
func (p *program) open() (f *os.File, path, digest string, err error) {
	path, pinned, err := p.lookUp()
	if err != nil {
		return nil, "", "", err
	}
	if f, err = procgroup.OpenProgram(path); err != nil {
		return nil, path, "", err
	}
	if digest, err = p.digestOf(f); err != nil {
		f.Close() //nolint:errcheck // only read
		return nil, path, "", err
	}
	if err := p.admit(path, digest, pinned); err != nil {
		f.Close() //nolint:errcheck // only read
		return nil, path, digest, supervisor.Permanent{Err: err}
	}
	return f, path, digest, nil
}

// admit decides whether a binary may be started. A pin is the operator's own word, and so is an installation.
func (p *program) admit(path, digest, pinned string) error {
	switch {
	case pinned == "" && p.trust != nil:
		return p.trust.Binary(digest)
	case pinned == "" || strings.EqualFold(pinned, digest):
		return nil
	case p.find != nil:
		return fmt.Errorf("%s has the SHA-256 digest %s, %s was installed: it was changed since; install it again", path, digest, pinned)
	}
	return fmt.Errorf("%s has the SHA-256 digest %s, the configuration pins %s: put the right binary there or change sha256", path, digest, pinned)
}

func (p *program) lookUp() (path, pinned string, err error) {
	if p.find != nil {
		return p.find()
	}
	if strings.ContainsRune(p.path, filepath.Separator) {
		return p.path, p.pinned, nil
	}
	if path, err = exec.LookPath(p.path); err != nil {
		return "", "", &fs.PathError{Op: "find in PATH", Path: p.path, Err: fs.ErrNotExist}
	}
	return path, p.pinned, nil
}

func (p *program) digestOf(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > maxProgram {
		return "", fmt.Errorf("%s has %d bytes, more than %d: it is no plugin, correct the path", f.Name(), info.Size(), maxProgram)
	}
	id := identify(info)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.digest != "" && id == p.known {
		return p.digest, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, info.Size())); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	p.known, p.digest = id, hex.EncodeToString(h.Sum(nil))
	return p.digest, nil
}
