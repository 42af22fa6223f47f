package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Unread is a key whose value is not known, since a partial [Environment] lacks what the daemon's own has. The field has its
// default, or nothing.
type Unread struct {
	// Block is the outermost block that the key stands in, such as `mcp_server "github"`; "" for a key outside of blocks.
	Block string
	// Key is the key's name, after those of the blocks between, such as "oauth.client_secret".
	Key string
	// Source is what could not be read, as it would be written, such as `secret("env:GITHUB_TOKEN")`.
	Source string
	// Reason is why not.
	Reason string
	// Pos is where the value starts.
	Pos Position
}

// String is the finding as an operator reads it.
func (u *Unread) String() string {
	where := u.Key
	if u.Block != "" {
		where += " of " + u.Block
	}
	return fmt.Sprintf("%s (%s) needs %s, which cannot be read here: %s", where, u.Pos, u.Source, u.Reason)
}

// Within reports whether the key is of a kind of block ("mcp_server"), of one block (`mcp_server "github"`), or one that is
// named with the block (`mcp_server "github".cwd`), its kind ("listen.admin") or, outside of blocks, without ("state_dir").
func (u *Unread) Within(place string) bool {
	kind, _, _ := strings.Cut(u.Block, " ")
	return place == strings.TrimPrefix(kind+"."+u.Key, ".") || kind != "" && (place == kind || place == u.Block || place == u.Block+"."+u.Key)
}

// missing is what an expression asked a partial environment for in vain.
type missing struct{ source, reason string }

// lacks answers a function that cannot read its source: a partial environment makes its value unknown.
func (d *decoder) lacks(env *Environment, source string, reason, fault error) (cty.Value, error) {
	if !env.Partial {
		return cty.NilVal, fault
	}
	d.missing = append(d.missing, missing{source, reason.Error()})
	return cty.UnknownVal(cty.String), nil
}

// value evaluates the expression of a key. known is false where the value depends on what is missing; that has been noted then.
func (d *decoder) value(attr *hcl.Attribute) (value cty.Value, known bool, diags hcl.Diagnostics) {
	d.missing = nil
	value, diags = attr.Expr.Value(d.ctx)
	if diags.HasErrors() || len(d.missing) == 0 || value.IsWhollyKnown() {
		return value, true, diags
	}
	u := Unread{Key: attr.Name, Source: d.missing[0].source, Reason: d.missing[0].reason, Pos: position(attr.Expr.Range())}
	if len(d.within) > 0 {
		u.Block = d.within[0]
		u.Key = strings.Join(append(d.within[1:len(d.within):len(d.within)], attr.Name), ".")
	}
	d.cfg.Unread = append(d.cfg.Unread, u)
	return value, false, nil
}

// checked decodes a block and checks it. What a check finds where values are not known does not count: serving and
// `hermesd config check` find it with them.
func (d *decoder) checked(target reflect.Value, body hcl.Body, s *scope, inherit bool) {
	unread := len(d.cfg.Unread)
	d.within = append(d.within, s.what)
	d.body(target, body, s, inherit)
	d.within = d.within[:len(d.within)-1]
	found := len(d.diags)
	if c, ok := target.Addr().Interface().(checker); ok {
		c.check(s)
	}
	if len(d.cfg.Unread) > unread {
		d.diags = d.diags[:found]
	}
}
