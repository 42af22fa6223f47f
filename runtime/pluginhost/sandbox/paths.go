package sandbox

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/internal/procgroup"
)

// systemFolders can be read, and programs in them executed, by everybody. Of /etc only what programs need to speak to the
// network, to show times and texts, and to load libraries: the rest holds secrets, hermesd's own among them.
var systemFolders = append([]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/run/current-system", "/snap",
	"/proc", "/sys", "/var/lib/ca-certificates", "/var/cache/fontconfig", "/run/systemd/resolve", "/run/resolvconf",
}, below("/etc",
	"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "default/locale", "ethertypes", "fonts", "gai.conf", "group",
	"host.conf", "hostname", "hosts", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime",
	"lsb-release", "machine-id", "magic", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/tls/certs",
	"pki/tls/cert.pem", "pki/tls/openssl.cnf", "protocols", "resolv.conf", "services", "shells", "ssl/cert.pem", "ssl/certs",
	"ssl/openssl.cnf", "static", "terminfo", "timezone",
)...)

var devices = below("/dev", "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")

const sharedMemory = "/dev/shm"

// containerTools command a daemon that is as good as root; whoever configures them wants that.
var containerTools = []string{"docker", "podman", "nerdctl", "docker-compose"}

var (
	containerSockets = []string{"/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"}
	systemSockets    = []string{"/run/systemd/private", "/run/dbus/system_bus_socket", "/run/libvirt", "/run/snapd.socket", "/run/snapd-snap.socket"}
)

// runners are programs that fetch what they run into folders of the user's home.
var runners = map[string][]string{
	"npx": nodeFolders, "npm": nodeFolders, "pnpm": nodeFolders, "pnpx": nodeFolders, "yarn": nodeFolders, "corepack": nodeFolders,
	"bun": {".bun", ".cache"}, "bunx": {".bun", ".cache"}, "deno": {".deno", ".cache"},
	"uv": pythonFolders, "uvx": pythonFolders, "pipx": pythonFolders,
}

var (
	nodeFolders   = []string{".npm", ".npmrc", ".cache", ".local/share/pnpm", ".local/share/corepack", ".yarn", ".config/configstore"}
	pythonFolders = []string{".cache", ".local/share/uv", ".local/share/pipx", ".local/pipx", ".config/uv"}
)

// scripts are the endings of files that an interpreter runs; what they load lies beside them.
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".pyz", ".rb", ".pl", ".php", ".lua", ".sh", ".jar"}

// projectFiles mark the top folder of what a script belongs to.
var projectFiles = []string{"node_modules", "package.json", "pyproject.toml", "setup.py", "Gemfile"}

// The bounds of looking at what an operator's block names.
const (
	maxClimb   = 4   // folders above a script in which its project's top is looked for
	maxFollow  = 4   // interpreters behind a script
	maxNamed   = 256 // paths
	maxShebang = 256 // bytes of a script's first line
)

func below(dir string, names ...string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = dir + "/" + name
	}
	return list
}

// openProgram makes the program readable with what belongs to it: the folder that it is installed in, where its links lead
// to, its interpreter, and the folders in which programs are looked up.
func (p *plan) openProgram() {
	p.openExecutable(p.program, maxFollow)
	for _, dir := range filepath.SplitList(p.variable("PATH")) {
		if filepath.IsAbs(dir) {
			p.readable(p.unlessPrivate(p.installation(dir), dir)...)
		}
	}
	if home := p.variable("HOME"); home != "" && !p.strict {
		p.readable(filepath.Join(home, ".local/lib")) // of Python's programs in .local/bin
	}
}

func (p *plan) openExecutable(path string, follow int) {
	if follow == 0 || path == "" {
		return
	}
	path = p.absolute([]string{path})[0]
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // the start will say so
	}
	p.readable(target) // also when it lies in the daemon's own store
	for _, file := range []string{path, target} {
		p.readable(p.unlessPrivate(p.installation(filepath.Dir(file)), file)...)
	}
	if interpreter := p.interpreter(target); interpreter != "" {
		p.openExecutable(interpreter, follow-1)
	}
}

// interpreter is what a script's first line names.
func (p *plan) interpreter(path string) string {
	f, err := procgroup.OpenProgram(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	line, err := bufio.NewReader(io.LimitReader(f, maxShebang)).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if err != nil || !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		for _, dir := range filepath.SplitList(p.variable("PATH")) {
			if found := filepath.Join(dir, word); isFile(found) {
				return found
			}
		}
	}
	return ""
}

// installation is the folder of everything that was installed together with what lies in dir.
func (p *plan) installation(dir string) string {
	if before, _, ok := strings.Cut(dir+"/", "/node_modules/"); ok {
		return before + "/node_modules"
	}
	if base := filepath.Base(dir); base == "bin" || base == ".bin" || base == "sbin" {
		if parent := filepath.Dir(dir); !p.broad(parent) && !p.personal(parent) {
			return parent
		}
	}
	return dir
}

// broad reports whether a folder is the user's home or above it.
func (p *plan) broad(dir string) bool {
	home := p.variable("HOME")
	return dir == "/" || home != "" && within(dir, filepath.Clean(home))
}

// personal reports whether a folder is one of those directly in the user's home in which programs keep what they know
// (.local, .cargo, .config), credentials among it.
func (p *plan) personal(dir string) bool {
	home := p.variable("HOME")
	return home != "" && filepath.Dir(dir) == filepath.Clean(home) && strings.HasPrefix(filepath.Base(dir), ".")
}

// unlessPrivate is folder, or only the file when the folder is broad, or is, holds, or lies in what is the daemon's own.
func (p *plan) unlessPrivate(folder, file string) []string {
	if !p.broad(folder) && !p.private(folder) {
		return []string{folder}
	}
	if file != folder && !p.private(file) {
		return []string{file}
	}
	return nil
}

// private reports whether a path, as it is written or where its links lead, is, holds, or lies in what is the daemon's own.
func (p *plan) private(path string) bool {
	target := resolved(path)
	return slices.ContainsFunc(p.own, func(own string) bool {
		return within(path, own) || within(own, path) || within(target, own) || within(own, target)
	})
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// openNamed opens what the block names: the folder to work in, and existing paths among the arguments, the variables and
// the configuration. Folders and files can be written to, since they are what the program works on, but not programs,
// scripts and what belongs to the system.
func (p *plan) openNamed() {
	if p.named {
		p.open(p.dir)
	}
	for n, arg := range p.args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		p.open(arg)
		if n > maxNamed {
			return
		}
	}
	for _, e := range p.env {
		name, value, _ := strings.Cut(e, "=")
		if name != "PATH" && name != "HOME" && filepath.IsAbs(value) {
			p.open(value)
		}
	}
	var config any
	if len(p.options.Config) > 0 && json.Unmarshal(p.options.Config, &config) == nil {
		left := maxNamed
		p.openValues(config, &left)
	}
}

func (p *plan) openValues(value any, left *int) {
	if *left--; *left < 0 {
		return
	}
	switch v := value.(type) {
	case string:
		if filepath.IsAbs(v) {
			p.open(v)
		}
	case []any:
		for _, one := range v {
			p.openValues(one, left)
		}
	case map[string]any:
		for _, one := range v {
			p.openValues(one, left)
		}
	}
}

func (p *plan) open(name string) {
	if !pathLike(name) {
		return
	}
	path := p.absolute([]string{name})[0]
	info, err := os.Stat(path)
	switch {
	case ofTheSystem(path), p.ownLink(path):
	case err != nil:
		p.openNew(path)
	case info.IsDir():
		if !p.private(path) {
			p.writable(path)
		}
	case slices.Contains(scripts, filepath.Ext(path)):
		p.readable(p.unlessPrivate(p.project(path), path)...)
	case p.private(path):
	case info.Mode()&0o111 != 0:
		p.readable(path)
	default:
		p.writable(path)
	}
}

// openNew opens the folder of a file that the program is to make, unless others' files are in it.
func (p *plan) openNew(path string) {
	if dir := filepath.Dir(path); p.opensForNew(dir) {
		p.writable(dir)
	}
}

func (p *plan) opensForNew(dir string) bool {
	return isDir(dir) && strings.Count(dir, "/") > 1 && !p.broad(dir) && !p.private(dir) && !ofTheSystem(dir)
}

// pathLike tells paths from words that happen to be the name of something in the working folder.
func pathLike(name string) bool {
	return strings.ContainsRune(name, '/') && !strings.HasPrefix(name, "-") || strings.HasPrefix(name, ".") ||
		slices.Contains(scripts, filepath.Ext(name))
}

func ofTheSystem(path string) bool {
	return path == "/" || within("/etc", path) || within("/dev", path) || within("/boot", path) || within("/run", path) ||
		slices.ContainsFunc(systemFolders, func(dir string) bool { return within(dir, path) })
}

// project is the folder of what a script is a part of.
func (p *plan) project(script string) string {
	own := p.installation(filepath.Dir(script))
	dir := own
	for range maxClimb {
		if p.broad(dir) {
			break
		}
		for _, mark := range projectFiles {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
		dir = filepath.Dir(dir)
	}
	return own
}

// openRunner opens the folders of programs that fetch what they run.
func (p *plan) openRunner() {
	home := p.variable("HOME")
	if home == "" {
		return
	}
	for _, word := range append([]string{p.program}, p.args[:min(len(p.args), 1)]...) {
		for _, folder := range runners[filepath.Base(word)] {
			p.writable(filepath.Join(home, folder))
		}
	}
	if slices.Contains(containerTools, filepath.Base(p.program)) {
		p.readable(filepath.Join(home, ".docker"))
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
