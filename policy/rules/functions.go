package rules

import (
	"errors"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functionTable is what conditions may call: cty's standard functions that look at values, and those that cty lacks.
// Functions that read files or the environment are not among them.
func functionTable() map[string]function.Function {
	patterns := &patternCache{}
	return map[string]function.Function{
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
		"startswith": predicate("prefix", strings.HasPrefix), "endswith": predicate("suffix", strings.HasSuffix),
		"glob": predicate("pattern", glob), "cidrcontains": cidrFunc,
		"regex": patterns.regex(), "regexall": stdlib.RegexAllFunc,
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc, "chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "join": stdlib.JoinFunc,
		"lower": stdlib.LowerFunc, "upper": stdlib.UpperFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc,
		"strlen": stdlib.StrlenFunc, "substr": stdlib.SubstrFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc,
		"trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc, "coalesce": stdlib.CoalesceFunc,
		"compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc,
		"element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "length": lengthFunc,
		"lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "reverse": stdlib.ReverseListFunc, "slice": stdlib.SliceFunc,
		"sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "jsonencode": stdlib.JSONEncodeFunc, "jsondecode": stdlib.JSONDecodeFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
	}
}

// predicate makes a function of two texts, the subject first.
func predicate(second string, f func(subject, second string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: second, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// glob matches a whole text against a pattern in which * stands for any run of characters, slashes included.
func glob(text, pattern string) bool {
	// path.Match's * stops at a slash; a character that no text holds takes the slash's place.
	const other = "\x00"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", other), strings.ReplaceAll(text, "/", other))
	return err == nil && ok
}

// cidrFunc is cidrcontains(prefix, address): whether a network holds an address or a smaller network.
var cidrFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "address", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		outer, err := netip.ParsePrefix(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "%q is no network in CIDR notation", args[0].AsString())
		}
		text := args[1].AsString()
		if inner, err := netip.ParsePrefix(text); err == nil {
			return cty.BoolVal(inner.Bits() >= outer.Bits() && outer.Contains(inner.Addr())), nil
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "%q is neither an address nor a network", text)
		}
		return cty.BoolVal(outer.Contains(address)), nil
	},
})

// lengthFunc is the number of characters of a text or of elements of anything else: cty's own knows no texts, and one
// who writes length(args.command) > 100 means its characters.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].Type() == cty.String {
			return stdlib.Strlen(args[0])
		}
		return stdlib.Length(args[0])
	},
})

// maxPatterns bounds the remembered expressions: a pattern may come from an argument.
const maxPatterns = 1000

var errNoMatch = errors.New("the pattern matches nothing in the text")

// patternCache keeps compiled regular expressions: cty's functions compile the pattern at every call, twice.
type patternCache struct {
	compiled sync.Map // pattern -> *regexp.Regexp
	count    atomic.Int64
}

func (p *patternCache) get(pattern string) (*regexp.Regexp, error) {
	if found, ok := p.compiled.Load(pattern); ok {
		return found.(*regexp.Regexp), nil
	}
	made, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	if p.count.Add(1) > maxPatterns {
		p.compiled.Clear()
		p.count.Store(0)
	}
	p.compiled.Store(pattern, made)
	return made, nil
}

// regex is cty's regex(pattern, text), quick for patterns without groups: its result is then the text that matched.
func (p *patternCache) regex() function.Function {
	plain := func(pattern cty.Value) *regexp.Regexp {
		if !pattern.IsKnown() {
			return nil
		}
		if made, err := p.get(pattern.AsString()); err == nil && made.NumSubexp() == 0 {
			return made
		}
		return nil
	}
	return function.New(&function.Spec{
		Params: stdlib.RegexFunc.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if plain(args[0]) != nil {
				return cty.String, nil
			}
			return stdlib.RegexFunc.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			made := plain(args[0])
			if made == nil {
				return stdlib.RegexFunc.Call(args)
			}
			found := made.FindStringIndex(args[1].AsString())
			if found == nil {
				return cty.NilVal, errNoMatch
			}
			return cty.StringVal(args[1].AsString()[found[0]:found[1]]), nil
		},
	})
}
