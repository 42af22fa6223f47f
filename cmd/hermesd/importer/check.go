package importer

import (
	"strings"

	"github.com/hermesd/hermesd/runtime/config"
)

// check makes sure that hermesd can load what is written: a block that it would refuse becomes a comment, with what stands
// for it, switched off.
func (im *importing) check() {
	if im.refusal(im.result.HCL()) == "" {
		return
	}
	for i := range im.result.Servers {
		s := &im.result.Servers[i]
		alone := Result{Servers: []Server{*s}}
		if reason := im.refusal(alone.HCL()); reason != "" {
			s.Broken, s.Reasons = true, append(s.Reasons, "it cannot work: "+reason)
			im.result.Notes = append(im.result.Notes, Note{File: s.file, Server: s.title, Text: "it cannot work, and is written switched off: " + reason})
		}
	}
}

// elsewhere is what a configuration needs besides the blocks.
const elsewhere = "state_dir = \"/nowhere\"\n"

// standIns are what a variable that is not set may become: an address, a number, a word.
var standIns = []string{"http://set.later", "1", "word"}

// refusal is why hermesd would not load a text; "" if it would, once the variables that it wants are set.
func (im *importing) refusal(hcl []byte) string {
	reason := ""
	for _, standIn := range standIns {
		env := &config.Environment{Lookup: func(name string) (string, bool) {
			if value := im.vars[name]; value != "" {
				return value, true
			}
			if value, ok := im.opts.lookup(name); ok && value != "" {
				return value, true
			}
			return standIn, true
		}}
		_, diags := config.Parse("imported.hcl", append([]byte(elsewhere), hcl...), env)
		if !diags.HasErrors() {
			return ""
		}
		for _, d := range diags.Items() {
			if d.Severity == "error" && reason == "" {
				reason = strings.Join(strings.Fields(d.Summary+": "+d.Detail), " ")
			}
		}
	}
	return reason
}
