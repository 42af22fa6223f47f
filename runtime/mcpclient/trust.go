package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Trust is what the operator has agreed to; the lock file of pluginhost/store is one.
type Trust interface {
	// Binary returns why a program with this SHA-256 digest must not start, nil if it may.
	Binary(digest string) error
	// Tools returns why each definition that must not be used is refused, by its full name.
	Tools(tools []tool.Definition) map[tool.Name]string
}

// launchers run a server that is named by their arguments; they change with the system's updates, and are not the server.
var launchers = []string{
	"node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "python", "python3", "uv", "uvx", "pipx",
	"ruby", "java", "php", "perl", "sh", "bash", "env", "docker", "podman", "nerdctl",
}

// maxServerFile bounds the file that is hashed before a start, in bytes.
const maxServerFile = 1 << 30

// admit holds the server's own file against what was accepted: the program, or the first file that a launcher is given. A
// server that a launcher fetches by name has none; its definitions are all that can be known of it.
func (o *Options) admit(program string) error {
	if o.Trust == nil {
		return nil
	}
	file := program
	if slices.Contains(launchers, strings.TrimRight(filepath.Base(program), "0123456789.")) || slices.Contains(launchers, filepath.Base(program)) {
		file = o.script()
	}
	if file == "" {
		return nil
	}
	digest, err := hashFile(file)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", file, err)
	}
	if err := o.Trust.Binary(digest); err != nil {
		return supervisor.Permanent{Err: err}
	}
	return nil
}

// script is the first argument that is a file.
func (o *Options) script() string {
	for _, arg := range o.Command[1:] {
		if !filepath.IsAbs(arg) && o.Dir != "" {
			arg = filepath.Join(o.Dir, arg)
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			return arg
		}
	}
	return ""
}

func hashFile(path string) (string, error) {
	f, err := procgroup.OpenProgram(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxServerFile+1))
	if err == nil && n > maxServerFile {
		err = fmt.Errorf("it has more than %d bytes", maxServerFile)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// distrust adds what the operator has not agreed to. Definitions that cannot be used are not put before the operator.
func (p *Provider) distrust(c *catalog) {
	if p.opts.Trust == nil {
		return
	}
	usable := make([]tool.Definition, 0, len(c.tools))
	for _, d := range c.tools {
		if _, refused := c.refused[d.Name]; !refused {
			usable = append(usable, d)
		}
	}
	maps.Copy(c.refused, p.opts.Trust.Tools(usable))
}

// Reconsider asks again whether program and definitions are trusted, after the operator has decided anew.
func (p *Provider) Reconsider() {
	p.mu.Lock()
	tools := p.kept.Tools
	listed := p.listed != digest{}
	p.listed = digest{} // so that the definitions are judged again
	p.mu.Unlock()
	if listed && p.replace(tools) {
		p.opts.OnChange()
	}
	if state := p.supervisor.Status().State; state == provider.Backoff || state == provider.Quarantined {
		p.supervisor.Restart()
	}
}
