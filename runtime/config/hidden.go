package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hermesd/hermesd/internal/redact"
)

// hide makes secrets of what providers are given under a name that says so, such as GITHUB_TOKEN, however it was written:
// as a text, or as the name of a variable of the daemon's own environment.
func (l *loader) hide(env *Environment) {
	for i := range l.cfg.Plugins {
		p := &l.cfg.Plugins[i]
		l.hideNamed(p.Env)
		l.hidePassed(env, p.PassEnv)
	}
	for i := range l.cfg.MCPServers {
		m := &l.cfg.MCPServers[i]
		l.hideNamed(m.Env)
		l.hideNamed(m.Headers)
		for _, arg := range m.Command {
			l.hideLogin(arg)
		}
		l.hidePassed(env, m.PassEnv)
		l.hideAddress(m.URL, l.labels["mcp_server"][i])
	}
	l.warnOfShort()
}

// longUser is the length in bytes from which a user name in an address is taken for a token, also beside a password: some
// services want one in its place and take anything for the password.
const longUser = 16

// login are the secrets before the host of an address: the password, and the user name if it is all there is or looks like
// a token.
func login(u *url.URL) []string {
	user := u.User.Username()
	password, ok := u.User.Password()
	web := u.Scheme == "http" || u.Scheme == "https"
	var found []string
	if len(user) >= longUser || !ok && web {
		found = append(found, user)
	}
	if password != "" {
		found = append(found, password)
	}
	return found
}

// hideLogin makes secrets of the login in a text that is an address, such as a database's.
func (l *loader) hideLogin(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	for _, found := range login(u) {
		l.secrets.addWhole(found)
	}
}

// hideAddress makes secrets of the login in an address, and of what its query gives under a name that says so.
func (l *loader) hideAddress(address string, at hcl.Range) {
	u, err := url.Parse(address)
	if err != nil {
		return // reported already
	}
	found := login(u)
	for name, values := range u.Query() {
		if redact.SecretName(name) {
			found = append(found, values...)
		}
	}
	written := false
	for _, text := range found {
		written = written || len(text) >= redact.MinLength && !l.secrets.holds(text)
		l.secrets.addWhole(text)
	}
	if written {
		l.report(hcl.DiagWarning, at, "Secret in the configuration file",
			`url holds one, readable for everyone who may read this file. Send it in headers, and write secret("env:NAME"), secret("file:PATH") or secret("credential:NAME") there.`)
	}
}

func (l *loader) hideNamed(values map[string]string) {
	for name, value := range values {
		if scheme, token, ok := strings.Cut(value, " "); ok && !strings.Contains(token, " ") && len(scheme) <= len("Negotiate") {
			value = token // of "Bearer TOKEN"
		}
		if redact.SecretName(name) {
			l.secrets.addWhole(value)
		}
		l.hideLogin(value)
	}
}

func (l *loader) hidePassed(env *Environment, names []string) {
	for _, name := range names {
		if value, ok := env.Lookup(name); ok && redact.SecretName(name) && len(value) >= redact.MinLength {
			l.secrets.add("env:"+name, value)
		}
	}
}

// warnOfShort tells of secrets that are too short to be masked.
func (l *loader) warnOfShort() {
	for _, s := range l.secrets.list {
		if s.Ref == "" || len(s.Value) >= redact.MinLength {
			continue
		}
		l.diags = append(l.diags, &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Summary: "Secret is too short to be masked", Subject: l.placeOf(s.Ref),
			Detail: fmt.Sprintf("%q gives fewer than %d bytes, which stand in many words: where it is part of a longer text, such as a line of the log, it stays readable. Use a longer secret.", s.Ref, redact.MinLength),
		})
	}
}

// placeOf finds where secret(ref) is written; nil if it is not written like that, or in JSON syntax.
func (l *loader) placeOf(ref string) (at *hcl.Range) {
	for _, path := range l.order {
		file := l.files[path]
		if file == nil {
			continue
		}
		body, ok := file.Body.(*hclsyntax.Body)
		if !ok {
			continue
		}
		// The visitor never fails.
		hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck
			call, ok := n.(*hclsyntax.FunctionCallExpr)
			if !ok || at != nil || call.Name != "secret" || len(call.Args) != 1 {
				return nil
			}
			if arg, diags := call.Args[0].Value(nil); !diags.HasErrors() && arg.Type() == cty.String && arg.AsString() == ref {
				at = call.Range().Ptr()
			}
			return nil
		})
	}
	return at
}

// holds reports whether a text is, or is part of, what secret(…) gave: of a whole address, too, in which it may be escaped.
func (s *secretSet) holds(text string) bool {
	return s.mask(text) != text || slices.ContainsFunc(s.list, func(known Secret) bool {
		plain, err := url.QueryUnescape(known.Value)
		return known.Ref != "" && (strings.Contains(known.Value, text) || err == nil && strings.Contains(plain, text))
	})
}

// values are the secrets themselves.
func (s *secretSet) values() []string {
	list := make([]string, 0, len(s.list))
	for _, secret := range s.list {
		if !slices.Contains(list, secret.Value) {
			list = append(list, secret.Value)
		}
	}
	return list
}
