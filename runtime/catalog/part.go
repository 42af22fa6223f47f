package catalog

import (
	"maps"
	"reflect"
	"slices"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// part is what a snapshot was built from: one provider and what it offered then.
type part struct {
	provider provider.Provider
	identity provider.Identity
	offer    *provider.Offer
	closed   provider.State // Disabled or Quarantined, else ""
	space    string         // what its tools' names begin with, the separator included; "" if they have no prefix
}

func newPart(p provider.Provider) part {
	x := part{provider: p, identity: p.Identity(), offer: p.Offer()}
	if x.identity.Prefix != "" {
		x.space = x.identity.Prefix + separator
	}
	// Only these two are the operator's doing or wait for the operator. All other states come and go by themselves, and a
	// tool list that followed them would flap.
	if s := x.offer.Status.State; s == provider.Disabled || s == provider.Quarantined {
		x.closed = s
	}
	return x
}

// identical reports whether y certainly says what x says, without a look at the definitions.
func (x part) identical(y part) bool {
	return x.provider == y.provider && x.closed == y.closed && sameSlice(x.offer.Tools, y.offer.Tools) &&
		sameIdentity(x.identity, y.identity) &&
		maps.Equal(x.offer.Unmet, y.offer.Unmet) && maps.Equal(x.offer.Refused, y.offer.Refused)
}

// equal reports whether y says what x says, for another list of the same provider's too.
func (x part) equal(y part) bool {
	return x.provider == y.provider && x.closed == y.closed &&
		sameIdentity(x.identity, y.identity) &&
		maps.Equal(x.offer.Unmet, y.offer.Unmet) && maps.Equal(x.offer.Refused, y.offer.Refused) &&
		(sameSlice(x.offer.Tools, y.offer.Tools) || slices.EqualFunc(x.offer.Tools, y.offer.Tools, sameDefinition))
}

func sameSlice(a, b []tool.Definition) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func sameDefinition(a, b tool.Definition) bool { return reflect.DeepEqual(a, b) }

func sameIdentity(a, b provider.Identity) bool { return reflect.DeepEqual(a, b) }
