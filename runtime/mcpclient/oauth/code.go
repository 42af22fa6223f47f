package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
)

// challengeMethod is the only method of PKCE that is used (RFC 7636).
const challengeMethod = "S256"

// consent is what a person is asked for, and as whom.
type consent struct {
	server   *metadata
	client   *client
	scopes   []string
	resource string // "" for none
	key      *proofKey
}

// authorizeByCode lets a person agree (RFC 6749 section 4.1 with PKCE).
func (a *Authorizer) authorizeByCode(ctx context.Context, t *target) (*Credentials, error) {
	if !slices.Contains(t.server.Challenges, challengeMethod) {
		return nil, fmt.Errorf("the authorization server %s does not say that it takes PKCE by %s, which MCP requires", t.server.Issuer, challengeMethod)
	}
	as, err := a.register(ctx, t.server)
	if err != nil {
		return nil, err
	}
	key, err := a.keyFor(t)
	if err != nil {
		return nil, err
	}
	answer, err := a.askPerson(ctx, &consent{server: t.server, client: as, scopes: t.scopes, resource: t.resource, key: key})
	if err != nil {
		return nil, err
	}
	return a.accept(t, as, key, answer)
}

// askPerson shows the link, waits for the code and takes it to the token endpoint.
func (a *Authorizer) askPerson(ctx context.Context, c *consent) (*tokenAnswer, error) {
	if err := secure("authorization_endpoint", c.server.AuthorizationEndpoint); err != nil {
		return nil, err
	}
	link, err := url.Parse(c.server.AuthorizationEndpoint)
	if err != nil {
		return nil, err
	}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	q := link.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": c.client.id, "redirect_uri": a.opts.RedirectURL, "state": state,
		"code_challenge": oauth2.S256ChallengeFromVerifier(verifier), "code_challenge_method": challengeMethod,
		"resource": c.resource, "scope": strings.Join(c.scopes, " "),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if c.key != nil {
		q.Set("dpop_jkt", c.key.thumbprint()) // the code, too, is for this key alone (RFC 9449 section 10)
	}
	link.RawQuery = q.Encode()
	back, err := a.opts.Show(ctx, &auth.AuthorizationArgs{URL: link.String()})
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(back.State), []byte(state)) != 1 {
		return nil, errors.New("what came back belongs to another login")
	}
	if err := c.server.checkIssuer(back.Iss); err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {back.Code}, "redirect_uri": {a.opts.RedirectURL}, "code_verifier": {verifier}}
	if c.resource != "" {
		form.Set("resource", c.resource)
	}
	return a.requestToken(ctx, &tokenRequest{endpoint: c.server.TokenEndpoint, issuer: c.server.Issuer, form: form, client: c.client, key: c.key})
}

// checkIssuer holds the issuer that came back with the code against the one that was asked (RFC 9207).
func (m *metadata) checkIssuer(iss string) error {
	switch {
	case iss == "" && !m.NamesIssuer:
		return nil
	case iss == "":
		return fmt.Errorf("the authorization server %s did not name itself with the code, as it says it does", m.Issuer)
	case iss != m.Issuer:
		return fmt.Errorf("the code is of the authorization server %q, and %q was asked", said(iss, nil), m.Issuer)
	case !m.NamesIssuer:
		return fmt.Errorf("the authorization server %s named itself with the code, and does not say that it does", m.Issuer)
	}
	return nil
}
