package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// errLogin is what only a new login mends.
var errLogin = errors.New("the login has ended")

// errUnbound is a token that anybody could use, where only others are taken.
var errUnbound = errors.New("the authorization server gave a token that is bound to no key (DPoP), and only such are taken")

// refresh gets the next token (RFC 6749 section 6), for the same resource as the last (RFC 8707), and stores it. The mutex
// is held.
func (a *Authorizer) refresh(ctx context.Context, c *Credentials) (*Credentials, error) {
	next, err := a.ask(ctx, c)
	if errors.Is(err, errLogin) {
		gone := *c
		gone.Refresh, gone.Expires = "", time.Time{} // the access token is tried as long as the server takes it
		err = errors.Join(fmt.Errorf("%w; log in again: hermesd mcp-server login %s", err, a.opts.Name), a.store(&gone))
	}
	if err != nil {
		return nil, fmt.Errorf("refreshing the access token of server %q: %w", a.opts.Name, err)
	}
	return next, a.store(next)
}

// ask sends the request.
func (a *Authorizer) ask(ctx context.Context, c *Credentials) (*Credentials, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.Refresh}}
	if c.Resource != "" {
		form.Set("resource", c.Resource)
	}
	as := &client{id: c.ClientID, secret: c.ClientSecret, method: c.Method}
	if c.ClientID != "" && c.ClientID == a.opts.ClientID { // the operator may have changed what proves it
		as.secret, as.key = a.opts.ClientSecret, a.opts.Key
	}
	if as.method == "" { // stored by a release that did not keep it
		as.method = secretInForm
		if c.InHeader {
			as.method = secretInHeader
		}
	}
	// Whoever wanted the token may leave, but the answer must not be lost: the old refresh token may be worth nothing by then.
	answer, err := a.requestToken(context.WithoutCancel(ctx), &tokenRequest{endpoint: c.TokenURL, issuer: c.Issuer, form: form, client: as, key: c.proof})
	var no *refusal
	if errors.As(err, &no) && (no.code == "invalid_grant" || no.code == "invalid_client" || no.code == "unauthorized_client") {
		return nil, fmt.Errorf("%w: %w", errLogin, err)
	}
	if err != nil {
		return nil, err
	}
	next, err := c.next(answer, time.Now())
	if err == nil && a.opts.Proof == ProofRequired && next.Type != boundToken {
		return nil, errUnbound
	}
	return next, err
}

// next takes in a token endpoint's answer. What it leaves out stays as it was.
func (c *Credentials) next(answer *tokenAnswer, now time.Time) (*Credentials, error) {
	n := *c
	n.Access, n.Expires = answer.Access, answer.ends(now)
	switch {
	case strings.EqualFold(answer.Type, boundToken):
		if n.proof == nil {
			return nil, errors.New("the authorization server gave a token that is bound to a key, without having seen one")
		}
		n.Type = boundToken
	case answer.Type == "" || strings.EqualFold(answer.Type, "Bearer"):
		n.Type = ""
	default:
		return nil, fmt.Errorf("the authorization server gave a token of type %q, which is not known here", said(answer.Type, nil))
	}
	if answer.Refresh != "" {
		n.Refresh = answer.Refresh
	}
	if answer.Scope != "" {
		n.Scopes = strings.Fields(answer.Scope)
	}
	return &n, nil
}
