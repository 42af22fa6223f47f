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

// Enterprise-managed authorization (MCP extension io.modelcontextprotocol/enterprise-managed-authorization): a person logs
// in at the company's identity provider only. That provider, not the person, decides which MCP servers hermesd may use for
// them: it exchanges their ID token for a grant (ID-JAG) that the MCP server's authorization server takes.

const (
	tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDToken   = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG     = "urn:ietf:params:oauth:token-type:id-jag"
)

// IdentityProvider is where people of a company log in.
type IdentityProvider struct {
	// Issuer is its issuer identifier, from which everything else is found (OpenID Connect Discovery).
	Issuer string
	// ClientID, and ClientSecret or Key if it wants a proof, are hermesd's registration there.
	ClientID, ClientSecret string
	Key                    *SigningKey
	// IDToken is the person's ID token. Without one the person logs in with hermesd.
	IDToken *Assertion
}

// identity is what is kept of a person's login at the identity provider.
type identity struct {
	IDToken string `json:"id_token"`
	Refresh string `json:"refresh_token,omitempty"`
}

// authorizeByProvider exchanges the ID token at the identity provider, and its grant for a token.
func (a *Authorizer) authorizeByProvider(ctx context.Context, t *target) (*Credentials, error) {
	p := a.opts.Provider
	server, err := a.readMetadata(ctx, p.Issuer, false)
	if err != nil {
		return nil, fmt.Errorf("the identity provider: %w", err)
	}
	if server.guessed {
		return nil, fmt.Errorf("the identity provider %s has no metadata; is issuer in idp right?", p.Issuer)
	}
	as, err := registered(p.ClientID, p.ClientSecret, p.Key, server)
	if err != nil {
		return nil, fmt.Errorf("the identity provider: %w", err)
	}
	person, token, err := a.identify(ctx, server, as)
	if err != nil {
		return nil, err
	}
	form := url.Values{
		"grant_type": {tokenExchange}, "requested_token_type": {typeIDJAG}, "audience": {t.server.Issuer}, "resource": {t.resource},
		"subject_token": {token}, "subject_token_type": {typeIDToken},
	}
	if len(t.scopes) > 0 {
		form.Set("scope", strings.Join(t.scopes, " "))
	}
	answer, err := a.requestToken(ctx, &tokenRequest{endpoint: server.TokenEndpoint, issuer: server.Issuer, form: form, client: as})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the identity provider %s does not give access to this server: %w", p.Issuer, err)
	case answer.Issued != typeIDJAG:
		return nil, fmt.Errorf("the identity provider %s gave a token of type %q instead of %s", p.Issuer, said(answer.Issued, nil), typeIDJAG)
	}
	c, err := a.grantTo(ctx, t, url.Values{"grant_type": {jwtBearer}, "assertion": {answer.Access}})
	if err != nil {
		return nil, err
	}
	c.Identity = person
	return c, nil
}

// identify gets the person's ID token: the one that is configured, the one of their last login, refreshed if it has ended,
// or that of a login now. What is to be kept of a login comes with it.
func (a *Authorizer) identify(ctx context.Context, server *metadata, as *client) (*identity, string, error) {
	if given := a.opts.Provider.IDToken; given != nil {
		token, err := given.read("ID token", time.Now())
		if err != nil {
			return nil, "", err
		}
		return nil, token.text, nil
	}
	held, err := a.present()
	if err != nil {
		return nil, "", err
	}
	var person *identity
	if held != nil {
		person = held.Identity
	}
	if person != nil {
		if token, err := (Assertion{Text: person.IDToken}).read("ID token", time.Now().Add(early)); err == nil {
			return person, token.text, nil
		}
		if next, err := a.refreshIdentity(ctx, server, as, person); err == nil {
			return next, next.IDToken, a.keepIdentity(next)
		} else if a.opts.Show == nil {
			return nil, "", fmt.Errorf("the login at the identity provider has ended: %w; log in again: hermesd mcp-server login %s", err, a.opts.Name)
		}
	}
	if a.opts.Show == nil {
		return nil, "", fmt.Errorf("nobody has logged in at the identity provider; log in: hermesd mcp-server login %s", a.opts.Name)
	}
	return a.logIn(ctx, server, as)
}

// refreshIdentity gets the next ID token.
func (a *Authorizer) refreshIdentity(ctx context.Context, server *metadata, as *client, person *identity) (*identity, error) {
	if person.Refresh == "" {
		return nil, errors.New("its ID token has ended, and it came without a refresh token")
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {person.Refresh}}
	answer, err := a.requestToken(ctx, &tokenRequest{endpoint: server.TokenEndpoint, issuer: server.Issuer, form: form, client: as})
	if err != nil {
		return nil, err
	}
	return person.next(answer)
}

// logIn asks the person (OpenID Connect, authorization code with PKCE).
func (a *Authorizer) logIn(ctx context.Context, server *metadata, as *client) (*identity, string, error) {
	scopes := []string{"openid"}
	if slices.Contains(server.Scopes, offlineAccess) {
		scopes = append(scopes, offlineAccess)
	}
	answer, err := a.askPerson(ctx, &consent{server: server, client: as, scopes: scopes})
	if err != nil {
		return nil, "", fmt.Errorf("the login at the identity provider: %w", err)
	}
	person, err := (&identity{}).next(answer)
	if err != nil {
		return nil, "", err
	}
	return person, person.IDToken, a.keepIdentity(person)
}

// keepIdentity stores a login before it is used: its refresh token may work once, whatever comes of the rest.
func (a *Authorizer) keepIdentity(person *identity) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, err := a.load()
	if err != nil {
		return err
	}
	c := Credentials{Server: a.opts.Server, Grant: a.opts.Grant}
	if held != nil {
		c = *held
	}
	c.Identity = person
	return a.store(&c)
}

// next takes in an answer of the identity provider.
func (i *identity) next(answer *tokenAnswer) (*identity, error) {
	n := identity{IDToken: answer.Identity, Refresh: i.Refresh}
	if answer.Refresh != "" {
		n.Refresh = answer.Refresh
	}
	if n.IDToken == "" {
		return nil, errors.New("the identity provider answered without an ID token; does the registration there allow the scope openid?")
	}
	return &n, nil
}
