package catalog

import "github.com/hermesd/hermesd/runtime/tool"

// BridgeNames are the names under which an agent sees the bridge tools. Empty ones are the reserved names.
type BridgeNames struct {
	Search, Describe, Call tool.Name
}

// BridgeKind is which of the three bridge tools a name means.
type BridgeKind string

// The three bridge tools.
const (
	BridgeSearch   BridgeKind = "search"
	BridgeDescribe BridgeKind = "describe"
	BridgeCall     BridgeKind = "call"
)

// OrDefault fills in the reserved names.
func (n BridgeNames) OrDefault() BridgeNames {
	if n.Search == "" {
		n.Search = tool.SearchName
	}
	if n.Describe == "" {
		n.Describe = tool.DescribeName
	}
	if n.Call == "" {
		n.Call = tool.CallName
	}
	return n
}

// Kind tells which bridge tool a name means, if any. The reserved names mean them too where they were renamed, since no
// provider may have them. Case, hyphens and spaces are folded as in every name that an agent gives.
func (n BridgeNames) Kind(name string) (BridgeKind, bool) {
	key := tool.Fold(name)
	if kind, ok := n.OrDefault().exactly(key); ok {
		return kind, true
	}
	return BridgeNames{}.OrDefault().exactly(key)
}

func (n BridgeNames) exactly(key string) (BridgeKind, bool) {
	switch key {
	case tool.Fold(n.Search):
		return BridgeSearch, true
	case tool.Fold(n.Describe):
		return BridgeDescribe, true
	case tool.Fold(n.Call):
		return BridgeCall, true
	}
	return "", false
}
