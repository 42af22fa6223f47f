package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxTextLabel bounds the names of rules, which are sentences, in characters.
const maxTextLabel = 200

var labelPattern = regexp.MustCompile(`^[a-z0-9_-]+$`)

// setLabel stores a block's label in the field that is tagged for it, and checks its form.
func (d *decoder) setLabel(item reflect.Value, label string, s *scope) {
	for _, f := range fieldsOf(item.Type()) {
		if f.label == "" {
			continue
		}
		item.Field(f.index).SetString(label)
		if f.label == "text" {
			if n := utf8.RuneCountInString(label); n == 0 || n > maxTextLabel {
				d.fault(s.label, "Invalid name", fmt.Sprintf("A name has 1 to %d characters.", maxTextLabel))
			}
			continue
		}
		_, limit, _ := strings.Cut(f.label, "-")
		longest, err := strconv.Atoi(limit)
		if err != nil {
			panic(err)
		}
		if !labelPattern.MatchString(label) || len(label) > longest || strings.Contains(label, "__") {
			d.fault(s.label, "Invalid name", fmt.Sprintf(
				"A name here has 1 to %d lower-case letters, digits, \"-\" and \"_\", and no \"__\", which separates names from tools.", longest))
		}
	}
}
