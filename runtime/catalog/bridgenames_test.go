package catalog_test

import (
	"testing"

	"github.com/hermesd/hermesd/runtime/catalog"
)

func TestBridgeNames(t *testing.T) {
	swapped := catalog.BridgeNames{Search: "tool_call", Call: "tool_search"}
	for name, test := range map[string]struct {
		names catalog.BridgeNames
		given string
		want  catalog.BridgeKind
	}{
		"a reserved name":                       {catalog.BridgeNames{}, "tool_describe", catalog.BridgeDescribe},
		"spelt another way":                     {catalog.BridgeNames{}, " Tool-Describe", catalog.BridgeDescribe},
		"a new name":                            {catalog.BridgeNames{Call: "Dispatch-It"}, "dispatch_it", catalog.BridgeCall},
		"the reserved name of a renamed tool":   {catalog.BridgeNames{Call: "dispatch"}, "tool_call", catalog.BridgeCall},
		"a new name wins over the reserved one": {swapped, "tool_call", catalog.BridgeSearch},
		"and so does the other":                 {swapped, "tool_search", catalog.BridgeCall},
		"any other name":                        {swapped, "tool", ""},
	} {
		if kind, ok := test.names.Kind(test.given); kind != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q", name, kind)
		}
	}
}
