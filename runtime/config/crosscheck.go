package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
)

// maxSocketPath is the longest path of a unix socket that every system takes (macOS has 104 bytes, the last one zero).
const maxSocketPath = 103

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// complete fills what depends on the machine.
func (l *loader) complete(env *Environment) {
	cfg := l.cfg
	if cfg.StateDir == "" {
		cfg.StateDir = env.firstDir([]dirVar{{"STATE_DIRECTORY", ""}, {"XDG_STATE_HOME", "hermesd"}, {"HOME", ".local/state/hermesd"}})
	}
	if cfg.StateDir == "" {
		l.fault(l.scopes[""].at, "No state directory", `Neither $STATE_DIRECTORY, $XDG_STATE_HOME nor $HOME is set. Write state_dir = "/path".`)
	}
	if cfg.Listen.Admin == "" {
		dir := env.firstDir([]dirVar{{"RUNTIME_DIRECTORY", ""}, {"XDG_RUNTIME_DIR", "hermesd"}})
		if dir == "" {
			dir = cfg.StateDir
		}
		cfg.Listen.Admin = filepath.Join(dir, "admin.sock")
	}
}

// crossCheck holds blocks against each other.
func (l *loader) crossCheck(env *Environment) {
	listen := l.scopes["listen"]
	if listen == nil {
		listen = l.scopes[""]
	}
	if n := len(l.cfg.Listen.Admin); n > maxSocketPath {
		listen.errorf("admin", "Socket path is too long", "%s has %d bytes and the system takes %d. Write listen { admin = … } with a shorter path.", l.cfg.Listen.Admin, n, maxSocketPath)
	}
	l.checkHTTP(listen, env)
	l.checkTokens()
	l.checkProviders()
	l.checkPrefixes()
	l.checkBackoffs()
	l.checkToolsets()
}

func (l *loader) checkHTTP(s *scope, env *Environment) {
	listen := &l.cfg.Listen
	if listen.HTTP == "off" {
		return
	}
	host, port, err := net.SplitHostPort(listen.HTTP)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		s.errorf("http", "Invalid value for http", `http must be host:port, such as "127.0.0.1:7433", or "off".`)
		return
	}
	local := loopback(host)
	if !local && listen.TLS == nil {
		s.errorf("http", "Listener without TLS", "%s can be reached from other machines, and tokens would cross the network in the clear. Add tls { cert = … key = … } to listen, or listen on 127.0.0.1.", listen.HTTP)
	}
	tokens := slices.ContainsFunc(l.cfg.Agents, func(a Agent) bool { return a.TokenSHA256 != "" && a.Enabled })
	closed := slices.ContainsFunc(l.cfg.Agents, func(a Agent) bool { return a.Name == LocalAgent && !a.Enabled })
	if !tokens && (env.Service || !local || closed) {
		s.errorf("http", "Listener without agents", "No agent has a token, so nobody could be told from anybody. Add agent \"NAME\" { token_sha256 = … } (`hermesd agent token NAME` makes one), or write http = \"off\".")
	}
}

// checkTokens refuses two agents with one token, since nobody could say whose call it is.
func (l *loader) checkTokens() {
	owner := map[string]Agent{}
	for i, a := range l.cfg.Agents {
		if first, taken := owner[a.TokenSHA256]; taken && a.TokenSHA256 != "" {
			l.fault(l.labels["agent"][i], "Two agents with one token", fmt.Sprintf("Agent %q at %s has the token, too. `hermesd agent token %s` makes a new one.", first.Name, first.Pos, a.Name))
			continue
		}
		owner[a.TokenSHA256] = a
	}
}

// ownSource is the label of the daemon's own tools.
const ownSource = "hermesd"

// checkProviders refuses two providers with one name: state, lock entries and messages go by it.
func (l *loader) checkProviders() {
	plugins := map[string]Position{}
	for _, p := range l.cfg.Plugins {
		plugins[p.Name] = p.Pos
	}
	for i, p := range l.cfg.Plugins {
		if p.Name == ownSource {
			l.fault(l.labels["plugin"][i], fmt.Sprintf("Provider name %q is taken", ownSource), "It is the daemon's own. Rename the plugin.")
		}
	}
	for i, m := range l.cfg.MCPServers {
		if at, taken := plugins[m.Name]; taken {
			l.fault(l.labels["mcp_server"][i], fmt.Sprintf("Two providers named %q", m.Name), fmt.Sprintf("The plugin at %s has the name, too, and a provider's state goes by its name. Rename one.", at))
		}
	}
	for i, h := range l.cfg.Hooks {
		if _, known := plugins[h.Plugin]; h.Plugin != "" && !known {
			l.fault(l.labels["hook"][i], fmt.Sprintf("Unknown plugin %q", h.Plugin), "A hook's plugin must be the label of a plugin block. "+suggestion(h.Plugin, slices.Sorted(maps.Keys(plugins))))
		}
	}
}
