package importer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a filter leaves out is never offered because nobody could read the filter.
func TestFiltersOfToolsFailClosed(t *testing.T) {
	type filter struct {
		Include, Exclude []string
		Enabled          bool
	}
	all := []string{"*"}
	none := filter{all, all, true}
	for name, tt := range map[string]struct {
		keys string
		want filter
	}{
		"no filter":              {`"timeout":5000`, filter{all, nil, true}},
		"every tool":             {`"tools":["*"]`, filter{all, nil, true}},
		"two lists":              {`"includeTools":["a","b"],"excludeTools":"c"`, filter{[]string{"a", "b"}, []string{"c"}, true}},
		"an empty include":       {`"includeTools":[]`, none},
		"an empty inner include": {`"tools":{"include":[]}`, none},
		"an include of null":     {`"tools":{"include":null}`, none},
		"an empty exclude":       {`"excludeTools":[]`, filter{all, nil, true}},
		"a map of excludes":      {`"disabledTools":{"rm":true,"ls":false}`, filter{all, []string{"rm"}, true}},
		"an inner map":           {`"tools":{"exclude":{"rm":true}}`, filter{all, []string{"rm"}, true}},
		"a map of includes":      {`"enabledTools":{"ls":true,"rm":false}`, filter{[]string{"ls"}, nil, true}},
		"includes all off":       {`"enabledTools":{"ls":false}`, none},
		"switches of tools":      {`"tools":{"rm":false,"ls":{"enabled":false}}`, filter{all, []string{"rm", "ls"}, true}},
		"tools switched on":      {`"tools":{"ls":true,"rm":false}`, filter{[]string{"ls"}, []string{"rm"}, true}},
		"everything and a list":  {`"tools":["a"],"allowedTools":["*"]`, filter{[]string{"a"}, nil, true}},
		"two lists of includes":  {`"tools":["a"],"allowedTools":["b"]`, filter{[]string{"a"}, nil, false}},
		"an unreadable exclude":  {`"excludeTools":[{"name":"rm"}]`, filter{all, nil, false}},
		"an unreadable map":      {`"disabledTools":{"rm":"sometimes"}`, filter{all, nil, false}},
		"an unreadable include":  {`"includeTools":true`, filter{all, nil, false}},
		"names in one text":      {`"excludeTools":"rm, mv"`, filter{all, nil, false}},
		"an unknown inner key":   {`"tools":{"ls":{"approval":"never"}}`, filter{all, nil, false}},
		"a filter of no name":    {`"blocked_tools":["rm"]`, filter{all, nil, false}},
		"another":                {`"toolFilter":{"deny":["rm"]}`, filter{all, nil, false}},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, `{"a":{"command":"x",`+tt.keys+`}}`, nil)
			s := load(t, r.HCL(), r).MCPServers[0]
			if diff := cmp.Diff(tt.want, filter{s.Tools.Include, s.Tools.Exclude, s.Enabled}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if closed := !s.Enabled || cmp.Equal(tt.want, none); closed && len(r.Notes) == 0 {
				t.Error("it is not listed")
			}
		})
	}
}
