package importer

import (
	"regexp"
	"strconv"
	"strings"
)

// A filter of tools must not fall open: one that cannot be read switches its block off, and one that lists no tool offers
// none.

// filterKey are names of filters, also of those that are not known here.
var filterKey = regexp.MustCompile(`(?i)(allow|includ|exclud|disab|enabl|block|den(y|ied)|filter|hid).*tool|tool.*(allow|includ|exclud|disab|enabl|block|den(y|ied)|filter|hid)`)

// toolName is a tool's name, or a glob for names.
var toolName = regexp.MustCompile(`^[^\s,;]+$`)

// toolNames reads a list of tools: one name, a list of names, or a map of names to booleans, which says it of those that
// are true.
func (im *importing) toolNames(key string, v value) (list []string, ok bool) {
	if v.kind == object {
		for _, m := range v.members {
			if m.value.kind != boolean {
				return nil, im.unreadable(key)
			}
			if m.value.isTrue() {
				list = append(list, m.name)
			}
		}
	} else if list, ok = v.texts(); !ok && v.kind != null {
		return nil, im.unreadable(key)
	}
	for _, name := range list {
		if !toolName.MatchString(name) {
			return nil, im.unreadable(key)
		}
	}
	return list, true
}

// unreadable switches the block off.
func (im *importing) unreadable(key string) bool {
	im.off(key, "a filter of tools that cannot be read here: write it as tools { include = [] exclude = [] }")
	return false
}

// include takes what may be offered.
func (im *importing) include(key string, v value) {
	list, ok := im.toolNames(key, v)
	if !ok || len(list) == 1 && list[0] == "*" {
		return
	}
	if im.block.Include != nil {
		im.off(key, "a second list of the tools to offer: write the one that counts")
		return
	}
	if len(list) == 0 {
		im.note(key, "it names no tool, so that none is offered")
		im.block.Exclude = append(im.block.Exclude, "*") // an empty include would be as good as none
		return
	}
	im.block.Include = list
}

// exclude takes what may not be offered.
func (im *importing) exclude(key string, v value) {
	list, _ := im.toolNames(key, v)
	im.block.Exclude = append(im.block.Exclude, list...)
}

// tools reads the filter of Hermes' files, lists of the tools to offer, and maps that say of each tool whether it is on.
func (im *importing) tools(v value) {
	if v.kind != object {
		im.include("tools", v)
		return
	}
	var on, off value
	on.kind, off.kind = array, array
	for _, m := range v.members {
		enabled, isSwitch := m.value.get("enabled")
		if m.value.kind == boolean {
			enabled, isSwitch = m.value, true
		}
		switch m.name {
		case "include":
			im.include("tools.include", m.value)
			continue
		case "exclude":
			im.exclude("tools.exclude", m.value)
			continue
		case "resources", "prompts":
			im.block.Settings = append(im.block.Settings, setting{m.name, strconv.FormatBool(m.value.isTrue())})
			continue
		}
		switch {
		case !isSwitch || enabled.kind != boolean:
			im.unreadable("tools." + m.name)
		case enabled.isTrue():
			on.items = append(on.items, value{kind: str, text: m.name})
		default:
			off.items = append(off.items, value{kind: str, text: m.name})
		}
	}
	if len(off.items) > 0 {
		im.exclude("tools", off)
	}
	if len(on.items) > 0 {
		im.note("tools", "only those that it switches on are offered: %s", strings.Join(textsOf(on), ", "))
		im.include("tools", on)
	}
}

func textsOf(v value) []string {
	list, _ := v.texts()
	return list
}
