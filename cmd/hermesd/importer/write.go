package importer

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// HCL is the result as blocks of hermesd's configuration.
func (r *Result) HCL() []byte {
	var b bytes.Buffer
	for i := range r.Servers {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.Servers[i].write(&b)
	}
	return hclwrite.Format(b.Bytes())
}

func (s *Server) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "mcp_server %s {\n", quote(s.Name))
	for _, reason := range s.Reasons {
		fmt.Fprintf(b, "# Switched off: %s\n", strings.Join(strings.Fields(reason), " "))
	}
	var body bytes.Buffer
	s.writeBody(&body)
	if s.Broken { // what would be refused, for whoever mends it, and what loads in its place
		for line := range strings.Lines(string(hclwrite.Format(body.Bytes()))) {
			b.WriteString("# " + line)
		}
		body.Reset()
		(&Server{URL: literal(replaceMe), Disabled: true}).writeBody(&body)
	}
	b.Write(body.Bytes())
	b.WriteString("}\n")
}

// replaceMe stands for what cannot work, in a domain that nobody has (RFC 2606).
const replaceMe = "https://replace-me.invalid"

// writeBody writes everything that a block may have.
func (s *Server) writeBody(b *bytes.Buffer) {
	set := func(key, expression string) { fmt.Fprintf(b, "%s = %s\n", key, expression) }
	if len(s.Command) > 0 {
		words := make([]string, len(s.Command))
		for i, w := range s.Command {
			words[i] = w.hcl()
		}
		set("command", "["+strings.Join(words, ", ")+"]")
	}
	if !s.URL.empty() {
		set("url", s.URL.hcl())
	}
	if !s.Cwd.empty() {
		set("cwd", s.Cwd.hcl())
	}
	writePairs(b, "env", s.Env)
	writePairs(b, "headers", s.Headers)
	for _, x := range s.Settings {
		set(x.key, x.expression)
	}
	if s.Disabled {
		set("enabled", "false")
	}
	if s.Include != nil || s.Exclude != nil {
		b.WriteString("tools {\n")
		if s.Include != nil {
			set("include", quoteAll(s.Include))
		}
		if s.Exclude != nil {
			set("exclude", quoteAll(s.Exclude))
		}
		b.WriteString("}\n")
	}
	if len(s.OAuth) > 0 {
		b.WriteString("oauth {\n")
		for _, x := range s.OAuth {
			set(x.key, x.expression)
		}
		b.WriteString("}\n")
	}
}

func writePairs(b *bytes.Buffer, key string, pairs []pair) {
	if len(pairs) == 0 {
		return
	}
	fmt.Fprintf(b, "%s = {\n", key)
	for _, p := range pairs {
		name := p.name
		if !variable.MatchString(name) {
			name = quote(name)
		}
		fmt.Fprintf(b, "%s = %s\n", name, p.value.hcl())
	}
	b.WriteString("}\n")
}

// EnvFile is the variables as NAME="value" lines, as systemd's EnvironmentFile= and shells read them. Those without a
// value are comments.
func (r *Result) EnvFile() []byte {
	var b bytes.Buffer
	for _, s := range r.Variables {
		if s.Value == "" {
			fmt.Fprintf(&b, "#%s=\n", s.Env)
			continue
		}
		fmt.Fprintf(&b, "%s=\"%s\"\n", s.Env, strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s.Value))
	}
	return b.Bytes()
}
