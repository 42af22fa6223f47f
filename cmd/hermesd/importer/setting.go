package importer

import (
	"strconv"
	"strings"
	"time"
)

// setting reads what only some programs have. It reports whether the configuration has a place for it.
func (im *importing) setting(s *Server, format Format, key string, v value) bool {
	set := func(name, expression string) bool {
		s.Settings = append(s.Settings, setting{name, expression})
		return true
	}
	unit := time.Millisecond
	if format == Hermes {
		unit = time.Second
	}
	switch key {
	case "timeout":
		return im.duration(key, v, unit, 24*time.Hour, set)
	case "connect_timeout":
		return im.duration(key, v, unit, 10*time.Minute, set)
	case "supports_parallel_tool_calls":
		return set("parallel", strconv.FormatBool(v.isTrue()))
	case "tools":
		return im.tools(s, v)
	case "includeTools", "includedTools", "allowedTools":
		s.Include, _ = v.texts()
	case "excludeTools", "excludedTools", "disabledTools":
		s.Exclude, _ = v.texts()
	case "envFile":
		im.note(key, "not read: put the variables of %s into env, or into hermesd's own environment and their names into pass_env", v.text)
	case "alwaysAllow", "autoApprove", "trust":
		im.note(key, "not carried over: hermesd decides by rules which calls need a human (see the block rule)")
	case "auth":
		return im.auth(s, v)
	case "oauth":
		im.oauth(s, v)
	case "sampling", "elicitation":
		im.note(key, "not carried over: whether a server may ask is the agent's client's to say")
	default:
		return false
	}
	return true
}

// duration reads a number of units, or a text with its unit.
func (im *importing) duration(key string, v value, unit, most time.Duration, set func(key, expression string) bool) bool {
	n, err := strconv.ParseFloat(v.text, 64)
	if err != nil {
		d, err := time.ParseDuration(v.text)
		if err != nil {
			return false
		}
		n, unit = d.Seconds(), time.Second
	}
	d := time.Duration(n * float64(unit)).Round(time.Millisecond)
	if d < time.Second || d > most {
		im.note(key, "%s is %v, which is out of bounds here; the default counts", v.text, d)
		return true
	}
	if unit == time.Millisecond {
		im.note(key, "%s was read as milliseconds", v.text)
	}
	return set(key, quote(shortDuration(d)))
}

// shortDuration writes "2m" for "2m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// tools reads the filter of Hermes' files, and the lists of tools of others.
func (im *importing) tools(s *Server, v value) bool {
	if v.kind != object {
		list, ok := v.texts()
		s.Include = list
		return ok && !(len(list) == 1 && list[0] == "*")
	}
	for _, m := range v.members {
		switch m.name {
		case "include":
			s.Include, _ = m.value.texts()
		case "exclude":
			s.Exclude, _ = m.value.texts()
		case "resources", "prompts":
			s.Settings = append(s.Settings, setting{m.name, strconv.FormatBool(m.value.isTrue())})
		default:
			im.note("tools."+m.name, "not carried over")
		}
	}
	return true
}

// auth is Hermes' "oauth", or Cursor's registration.
func (im *importing) auth(s *Server, v value) bool {
	if v.kind == object {
		im.oauth(s, v)
		return true
	}
	if strings.EqualFold(v.text, "oauth") {
		im.note("auth", "log in once the daemon is configured: hermesd mcp-server login %s", im.label)
		return true
	}
	return false
}

// oauth reads a registration at an authorization server, under the names that programs give its parts.
func (im *importing) oauth(s *Server, v value) {
	for _, m := range v.members {
		switch strings.ToLower(strings.ReplaceAll(m.name, "_", "")) {
		case "clientid":
			s.OAuth = append(s.OAuth, setting{"client_id", im.expand("oauth."+m.name, m.value.text, false, "", "").hcl()})
		case "clientsecret":
			s.OAuth = append(s.OAuth, setting{"client_secret", im.expand("oauth."+m.name, m.value.text, true, envName(im.label, "CLIENT_SECRET"), "").hcl()})
		case "scope", "scopes":
			list, _ := m.value.texts()
			if len(list) == 1 {
				list = strings.Fields(list[0])
			}
			s.OAuth = append(s.OAuth, setting{"scopes", quoteAll(list)})
		case "redirectport", "callbackport":
			port, err := strconv.ParseUint(m.value.text, 10, 16)
			if err != nil {
				im.note("oauth."+m.name, "left out: it is no port")
				continue
			}
			s.OAuth = append(s.OAuth, setting{"redirect_port", strconv.FormatUint(port, 10)})
		default:
			im.note("oauth."+m.name, "not carried over")
		}
	}
	im.note("oauth", "log in once the daemon is configured: hermesd mcp-server login %s", im.label)
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
