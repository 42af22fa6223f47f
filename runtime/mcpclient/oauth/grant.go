package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The grants that need nobody.

// jwtBearer is the grant of an assertion that somebody else has signed (RFC 7523 section 2.1).
const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// authorizeAsClient is the grant of a client with an account of its own (RFC 6749 section 4.4; MCP extension
// io.modelcontextprotocol/oauth-client-credentials).
func (a *Authorizer) authorizeAsClient(ctx context.Context, t *target) (*Credentials, error) {
	return a.grantTo(ctx, t, url.Values{"grant_type": {"client_credentials"}})
}

// authorizeAsWorkload presents the token that the platform gave to this process (MCP extension
// io.modelcontextprotocol/auth/wif).
func (a *Authorizer) authorizeAsWorkload(ctx context.Context, t *target) (*Credentials, error) {
	assertion, err := a.opts.Assertion.read("assertion", time.Now())
	if err != nil {
		return nil, err
	}
	// Who has the assertion can use it wherever it is good, and the MCP server says where it goes. So it goes where the
	// operator says, or where it says itself that it is for.
	if a.opts.Issuer == "" && !assertion.isFor(t.server) {
		return nil, fmt.Errorf("the assertion is for %s, and the server names the authorization server %s; nothing was sent there. If that one is meant, write its issuer into oauth", strings.Join(assertion.audience, ", "), t.server.Issuer)
	}
	return a.grantTo(ctx, t, url.Values{"grant_type": {jwtBearer}, "assertion": {assertion.text}})
}

// grantTo asks the MCP server's authorization server for a token as the operator's client.
func (a *Authorizer) grantTo(ctx context.Context, t *target, form url.Values) (*Credentials, error) {
	as, err := registered(a.opts.ClientID, a.opts.ClientSecret, a.opts.Key, t.server)
	if err != nil {
		return nil, err
	}
	key, err := a.keyFor(t)
	if err != nil {
		return nil, err
	}
	form.Set("resource", t.resource)
	if len(t.scopes) > 0 {
		form.Set("scope", strings.Join(t.scopes, " "))
	}
	answer, err := a.requestToken(ctx, &tokenRequest{endpoint: t.server.TokenEndpoint, issuer: t.server.Issuer, form: form, client: as, key: key})
	if err != nil {
		return nil, err
	}
	answer.Refresh = "" // the grant itself gets the next token (RFC 6749 section 4.4.3)
	return a.accept(t, as, key, answer)
}

// keyFor makes the key that a token is to be bound to, where either server can do that; nil otherwise.
func (a *Authorizer) keyFor(t *target) (*proofKey, error) {
	wanted := t.bound || a.opts.Proof == ProofRequired
	switch takes := t.server.ProofAlgorithms; {
	case a.opts.Proof == ProofOff:
		if t.bound {
			return nil, errors.New(`the server takes tokens with a proof only (DPoP), and the block says dpop = "off"`)
		}
		return nil, nil
	case len(takes) > 0 && !slices.Contains(takes, proofAlgorithm):
		if wanted {
			return nil, fmt.Errorf("the authorization server takes proofs (DPoP) by %s; hermesd makes them by %s", said(strings.Join(takes, ", "), nil), proofAlgorithm)
		}
		return nil, nil
	case len(takes) == 0 && !wanted:
		return nil, nil
	}
	return newProofKey()
}

// accept makes credentials of an answer.
func (a *Authorizer) accept(t *target, as *client, key *proofKey, answer *tokenAnswer) (*Credentials, error) {
	c := &Credentials{
		Server: a.opts.Server, Grant: a.opts.Grant, Resource: t.resource, Issuer: t.server.Issuer, TokenURL: t.server.TokenEndpoint,
		ClientID: as.id, Method: as.method, Scopes: t.scopes, proof: key,
	}
	if a.opts.Grant == AuthorizationCode {
		c.ClientSecret = as.secret // perhaps of a registration that nobody else knows
	}
	c, err := c.next(answer, time.Now())
	switch {
	case err != nil:
		return nil, err
	case c.Type == boundToken:
		c.Key, err = key.text()
		return c, err
	case t.bound || a.opts.Proof == ProofRequired:
		return nil, errUnbound
	}
	c.proof = nil
	return c, nil
}
