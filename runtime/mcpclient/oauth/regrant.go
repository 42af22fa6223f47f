package oauth

import (
	"context"
	"fmt"
)

// regrants reports whether the grant can be asked for the next token: without a person, and as it was asked for this one. It is
// asked shortly before this one ends, so that no request pays for a refusal.
func (a *Authorizer) regrants(c *Credentials) bool {
	return a.grant != nil && (a.opts.Show == nil || !a.AsksPerson()) && c.Issuer != "" && c.TokenURL != ""
}

// regrant are the credentials to use in the place of those whose token is about to end or has ended: the same if no others
// can be had, which a refusal of the server may still bring.
func (a *Authorizer) regrant(ctx context.Context, c *Credentials) (*Credentials, error) {
	if c.ends(0) {
		a.authorizing.Lock()
	} else if !a.authorizing.TryLock() {
		return c, nil // somebody else is asking, and it is still good
	}
	defer a.authorizing.Unlock()
	now, err := a.present()
	if err != nil || now.access() != c.access() || c.access() == a.last {
		return now, err
	}
	next, err := a.askAgain(ctx, c)
	if err == nil {
		err = a.keep(next)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		a.last = c.access()
		a.log.Info("no new access token was had before the end of the present one; it is asked for when the server refuses that",
			"server", a.opts.Name, "error", err)
		return c, nil
	case next.ends(early): // else each request would ask for one
		a.last = next.access()
	}
	return next, nil
}

// askAgain asks for a token like the last one, where that came from.
func (a *Authorizer) askAgain(ctx context.Context, c *Credentials) (*Credentials, error) {
	server, err := a.readMetadata(ctx, c.Issuer, false)
	if err != nil {
		return nil, err
	}
	if server.Issuer != c.Issuer || server.TokenEndpoint != c.TokenURL {
		return nil, fmt.Errorf("the authorization server %s has no longer the token endpoint %s", c.Issuer, c.TokenURL)
	}
	t := &target{resource: c.Resource, scopes: c.Scopes, server: server, bound: c.Type == boundToken}
	if len(a.opts.Scopes) > 0 {
		t.scopes = a.opts.Scopes
	}
	return a.grant(ctx, t)
}
