package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// toolNamePattern is what function-calling models accept as a name.
var toolNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

var (
	sha256Pattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
	envPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (t *ToolSearch) check(s *scope) {
	if t.SearchDefaultLimit > t.MaxSearchLimit && !s.failed["max_search_limit"] {
		s.errorf("search_default_limit", "Invalid value for search_default_limit",
			"search_default_limit must be a whole number from 1 to max_search_limit, which is %d. It is %d.", t.MaxSearchLimit, t.SearchDefaultLimit)
	}
	bridge := []string{BridgeSearch, BridgeDescribe, BridgeCall}
	owner := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(t.Names)) {
		name := t.Names[key]
		switch {
		case !slices.Contains(bridge, key):
			s.errorf("names", "Unknown bridge tool", "names has no %q. %s", key, suggestion(key, bridge))
		case !toolNamePattern.MatchString(name):
			s.errorf("names", "Invalid tool name", "%q is no tool name: 1 to 64 letters, digits, \"_\" and \"-\".", name)
		case owner[name] != "":
			s.errorf("names", "Bridge tools with one name", "%s and %s are both named %q.", owner[name], key, name)
		}
		owner[name] = key
	}
}

func (t *ToolSearch) turn(on bool) {
	if !on {
		t.Enabled = "off"
	}
}

func (a *Agent) start(c *Config) {
	a.ToolSearch, a.Guard = c.Tools.ToolSearch, c.Guard
}

func (a *Agent) check(s *scope) {
	s.digest("token_sha256", &a.TokenSHA256)
	if a.Toolsets != nil {
		for i, name := range *a.Toolsets {
			s.toolset("toolsets", i, name)
		}
	}
	for i, name := range a.Exclude {
		if set, ok := strings.CutPrefix(name, "toolset:"); ok {
			s.toolset("exclude", i, set)
		}
	}
}

func (t *Toolset) check(s *scope) {
	for i, name := range t.Include {
		s.toolset("include", i, name)
	}
}

// digest checks a SHA-256 and brings it into lower case.
func (s *scope) digest(key string, value *string) {
	*value = strings.ToLower(*value)
	if *value != "" && !sha256Pattern.MatchString(*value) {
		s.errorf(key, "Invalid value for "+key, "%s must be a SHA-256 in hexadecimal, 64 digits.", key)
	}
}

func (p *Plugin) check(s *scope) {
	if s.written("path") || s.written("command") {
		s.exactlyOne("path", "command")
	}
	if s.written("path") && p.Path == "" {
		s.errorf("path", "Invalid value for path", "path must not be empty.")
	}
	if s.written("command") && s.written("args") {
		s.errorf("args", "args beside command", "command holds the arguments, too. args is for path, or for an installed plugin.")
	}
	if p.Installed() && s.written("sha256") {
		s.errorf("sha256", "sha256 without path", "The store checks an installed plugin's digest; `hermesd plugin pin` keeps its release.")
	}
	s.command("command", p.Command)
	s.digest("sha256", &p.SHA256)
	s.variables(p.Env, p.PassEnv)
}

func (m *MCPServer) check(s *scope) {
	s.exactlyOne("command", "url")
	s.command("command", m.Command)
	s.variables(m.Env, m.PassEnv)
	s.address("url", m.URL, false)
	s.needs("command", "cwd", "env", "pass_env")
	s.needs("url", "headers")
	plain := OAuth{} // as `hermesd config show` shows it beside command, too
	s.defaults(reflect.ValueOf(&plain).Elem())
	if at := s.blocks["oauth"]; at != nil && !s.written("url") && !reflect.DeepEqual(m.OAuth, plain) {
		s.fault(*at, "oauth without url", "oauth has a meaning only beside url.")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if !toolNamePattern.MatchString(name) {
			s.errorf("headers", "Invalid header name", "%q is no header name: letters, digits, \"-\" and \"_\".", name)
		}
		if strings.ContainsFunc(m.Headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == '\x7f' }) {
			s.errorf("headers", "Invalid header value", "The value of %q holds a line break or another control character.", name)
		}
	}
}

// needs refuses keys that mean nothing without another one.
func (s *scope) needs(owner string, keys ...string) {
	for _, key := range keys {
		if s.written(key) && !s.written(owner) {
			s.errorf(key, key+" without "+owner, "%s has a meaning only beside %s.", key, owner)
		}
	}
}

func (s *scope) exactlyOne(keys ...string) {
	var found []string
	for _, key := range keys {
		if s.written(key) {
			found = append(found, key)
		}
	}
	list := strings.Join(keys[:len(keys)-1], ", ") + " or " + keys[len(keys)-1]
	switch len(found) {
	case 0:
		s.fault(s.at, "Missing "+list, fmt.Sprintf("%s needs %s.", s.what, list))
	case 1:
	default:
		s.errorf(found[1], fmt.Sprintf("Both %s and %s", found[0], found[1]), "%s takes exactly one of %s.", s.what, list)
	}
}

func (s *scope) command(key string, argv []string) {
	if argv != nil && (len(argv) == 0 || argv[0] == "") {
		s.errorf(key, "Invalid value for "+key, "%s must name a program: %s = [\"program\", \"argument\"].", key, key)
	}
	s.program(argv)
}

func (s *scope) variables(env map[string]string, pass []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envPattern.MatchString(name) {
			s.errorf("env", "Invalid variable name", "%q is no name of an environment variable.", name)
		}
	}
	for _, name := range pass {
		if !envPattern.MatchString(name) {
			s.errorf("pass_env", "Invalid variable name", "%q is no name of an environment variable. Values are set with env.", name)
		}
	}
}

// address checks a URL: http or https with a host; with secure, plain http only to this machine.
func (s *scope) address(key, text string, secure bool) {
	if !s.written(key) {
		return
	}
	u, err := url.Parse(text)
	switch {
	case secure && err == nil && u.User != nil:
		s.errorf(key, "Invalid value for "+key, "%s must have no user and password.", key)
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		s.errorf(key, "Invalid value for "+key, "%s must be a URL that begins with https:// or http://.", key)
	case secure && u.Scheme == "http" && !loopback(u.Hostname()):
		s.errorf(key, "Invalid value for "+key, "%s must begin with https://; http:// is for this machine only.", key)
	}
}

func (r *Rule) check(s *scope) { r.Text = s.source(s.attrs["when"]) }

func (h *Hook) check(s *scope) {
	s.exactlyOne("exec", "webhook", "plugin")
	s.command("exec", h.Exec)
	s.address("webhook", h.Webhook, true)
	s.needs("webhook", "secret")
	if h.OnError == "" {
		h.OnError = "allow"
		if h.On == "pre_call" {
			h.OnError = "block"
		}
	}
}

func (a *Approvals) check(s *scope) {
	s.address("webhook", a.Webhook, true)
	s.needs("webhook", "secret")
	if a.Webhook != "" && a.Secret == "" && !s.failed["secret"] {
		s.errorf("webhook", `Missing key "secret"`, "Without a secret, which signs the webhook's answers, anybody could answer. Write secret = secret(\"env:NAME\").")
	}
	if a.Wait > a.Timeout {
		s.errorf("wait", "Invalid value for wait", "wait must not be longer than timeout, which is %s.", formatDuration(a.Timeout))
	}
}

func (g *Guard) check(s *scope) {
	pairs := []struct {
		name        string
		warn, block int
	}{{"same_call", g.SameCallWarn, g.SameCallBlock}, {"same_tool", g.SameToolWarn, g.SameToolBlock}}
	for _, p := range pairs {
		if p.block > 0 && p.warn > p.block {
			s.errorf(p.name+"_warn", "Invalid value for "+p.name+"_warn", "%s_warn must not be above %s_block, which is %d.", p.name, p.name, p.block)
		}
	}
}

func (e *Embeddings) check(s *scope) { s.address("url", e.URL, true) }
