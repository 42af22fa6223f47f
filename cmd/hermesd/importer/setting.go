package importer

import (
	"strconv"
	"strings"
	"time"
)

// setting reads what only some programs have. It reports whether the configuration has a place for it.
func (im *importing) setting(key string, v value) bool {
	s := im.block
	set := func(name, expression string) bool {
		s.Settings = append(s.Settings, setting{name, expression})
		return true
	}
	unit := time.Millisecond
	if im.section.format == Hermes {
		unit = time.Second
	}
	switch key {
	case "timeout":
		return im.duration(key, key, v, unit, bounds{time.Second, 24 * time.Hour})
	case "connect_timeout":
		return im.duration(key, key, v, unit, bounds{100 * time.Millisecond, 10 * time.Minute})
	case "idle_timeout", "max_lifetime":
		return im.duration(key, key, v, unit, bounds{0, 365 * 24 * time.Hour})
	case "idle_timeout_seconds", "max_lifetime_seconds":
		return im.duration(key, strings.TrimSuffix(key, "_seconds"), v, time.Second, bounds{0, 365 * 24 * time.Hour})
	case "supports_parallel_tool_calls":
		return set("parallel", strconv.FormatBool(v.isTrue()))
	case "tools":
		im.tools(v)
	case "includeTools", "includedTools", "allowedTools", "enabledTools", "enabled_tools", "allowed_tools":
		im.include(key, v)
	case "excludeTools", "excludedTools", "disabledTools", "disabled_tools":
		im.exclude(key, v)
	case "envFile":
		im.note(key, "not read: put the variables of %s into env, or into hermesd's own environment and their names into pass_env", v.text)
	case "alwaysAllow", "autoApprove", "trust":
		im.note(key, "not carried over: hermesd decides by rules which calls need a human (see the block rule)")
	case "auth":
		return im.auth(v)
	case "oauth":
		im.oauth(v)
	case "sampling", "elicitation":
		im.note(key, "not carried over: whether a server may ask is the agent's client's to say")
	default:
		return false
	}
	return true
}

// bounds are those of a setting, see the configuration's reference.
type bounds struct{ least, most time.Duration }

// duration reads a number of units, or a text with its unit, for a key of the configuration.
func (im *importing) duration(key, name string, v value, unit time.Duration, b bounds) bool {
	n, err := strconv.ParseFloat(v.text, 64)
	if err != nil {
		d, err := time.ParseDuration(v.text)
		if err != nil {
			return false
		}
		n, unit = d.Seconds(), time.Second
	}
	if seconds := n * unit.Seconds(); !(seconds >= b.least.Seconds() && seconds <= b.most.Seconds()) {
		im.note(key, "%s is %gs, which is out of bounds here; the default counts", v.text, seconds)
		return true
	}
	if unit == time.Millisecond {
		im.note(key, "%s was read as milliseconds", v.text)
	}
	d := time.Duration(n * float64(unit)).Round(time.Millisecond)
	im.block.Settings = append(im.block.Settings, setting{name, quote(shortDuration(d))})
	return true
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

// auth is Hermes' "oauth", or Cursor's registration.
func (im *importing) auth(v value) bool {
	if v.kind == object {
		im.oauth(v)
		return true
	}
	if strings.EqualFold(v.text, "oauth") {
		im.note("auth", "log in once the daemon is configured: hermesd mcp-server login %s", im.label)
		return true
	}
	return false
}

// oauth reads a registration at an authorization server, under the names that programs give its parts.
func (im *importing) oauth(v value) {
	s := im.block
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
