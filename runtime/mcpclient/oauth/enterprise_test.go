package oauth_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth/oauthtest"
)

// company is a world with an identity provider.
type company struct {
	*world
	idp *oauthtest.Provider
}

func newCompany(t *testing.T) *company {
	c := &company{newWorld(t), oauthtest.NewProvider(t)}
	c.issuer.Register("robot", "s3cret")
	c.issuer.Trust(c.idp.URL, c.idp.Public())
	return c
}

func (c *company) options(o *oauth.Options) {
	o.Grant, o.ClientID, o.ClientSecret = oauth.EnterpriseManaged, "robot", "s3cret"
	o.Provider = &oauth.IdentityProvider{Issuer: c.idp.URL, ClientID: c.idp.ClientID, ClientSecret: c.idp.Secret}
}

// given has the ID token come from a file.
func (c *company) given(text string) func(*oauth.Options) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "id-token")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return func(o *oauth.Options) { c.options(o); o.Provider.IDToken = &oauth.Assertion{File: file} }
}

func TestTheIdentityProviderGivesAccess(t *testing.T) {
	c := newCompany(t)
	client := c.connect(c.authorizer(c.given(c.idp.IDToken())))
	client.ready(t)
	c.issuer.Forget(true, false)
	if err := client.read(t); err != nil {
		t.Errorf("after its token ended: %v", err)
	}
	if n := c.idp.Count(exchange); n != 2 {
		t.Errorf("%d exchanges", n)
	}
}

func TestWhatTheIdentityProviderMayAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*company)
		want string
	}{
		"it refuses, and repeats the token": {func(c *company) { c.idp.Refuse() }, "access_denied not for you, with ***"},
		"it gives something else":           {func(c *company) { c.idp.SetIssued("urn:ietf:params:oauth:token-type:access_token") }, "instead of urn:ietf:params:oauth:token-type:id-jag"},
		"its grant is for another client":   {func(c *company) { c.idp.Grantee = "somebody" }, "invalid_grant"},
		"its grants are not trusted":        {func(c *company) { c.issuer.Trust(c.idp.URL, oauthtest.NewKey(c.t).Public()) }, "invalid_grant"},
		"it does not know the client":       {func(c *company) { c.idp.Secret = "changed" }, "invalid_client"},
		"it is not there":                   {func(c *company) { c.idp.Close() }, "the identity provider"},
	} {
		t.Run(name, func(t *testing.T) {
			company := newCompany(t)
			token := company.idp.IDToken()
			a := company.authorizer(company.given(token))
			c.set(company)
			fails(t, company.ask(a), c.want, token, "idp-secret", "s3cret")
			if n := company.idp.Count(exchange); n > 1 {
				t.Errorf("%d tries", n)
			}
		})
	}
}

func TestAnIDTokenThatHasEndedIsNotSent(t *testing.T) {
	c := newCompany(t)
	c.idp.SetLife(-time.Minute)
	token := c.idp.IDToken()
	fails(t, c.ask(c.authorizer(c.given(token))), "the ID token in ", token)
	if n := c.idp.Count(exchange); n != 0 {
		t.Errorf("%d exchanges", n)
	}
}

func TestALoginAtTheIdentityProviderServesTheDaemon(t *testing.T) {
	c := newCompany(t)
	fails(t, c.ask(c.authorizer(c.options)), "log in: hermesd mcp-server login notes")
	_, person := browser(t)
	login := c.connect(c.authorizer(c.options, person))
	login.ready(t)
	login.stop()
	daemon := c.connect(c.authorizer(c.options))
	daemon.ready(t)
	c.issuer.Forget(true, false)
	if err := daemon.read(t); err != nil {
		t.Errorf("after its token ended: %v", err)
	}
	if n := c.idp.Count("authorization_code"); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func TestAnEndedIDTokenIsRefreshed(t *testing.T) {
	c := newCompany(t)
	c.idp.SetLife(time.Second) // less than what is left in hand
	_, person := browser(t)
	login := c.connect(c.authorizer(c.options, person))
	login.ready(t)
	login.stop()
	for n := 1; n <= 2; n++ { // each refresh token works once
		c.issuer.Forget(true, false)
		if err := c.ask(c.authorizer(c.options)); err != nil || c.idp.Count("refresh_token") != n {
			t.Errorf("got %v, %d refreshes", err, c.idp.Count("refresh_token"))
		}
	}
	c.idp.Forget()
	c.issuer.Forget(true, false)
	fails(t, c.ask(c.authorizer(c.options)), "log in again: hermesd mcp-server login notes")
}

// The refresh token works once, so a new one must not be lost with what comes after it.
func TestARefreshedLoginIsKeptWhenAccessIsRefused(t *testing.T) {
	c := newCompany(t)
	c.idp.SetLife(time.Second)
	_, person := browser(t)
	login := c.connect(c.authorizer(c.options, person))
	login.ready(t)
	login.stop()
	c.issuer.Forget(true, false)
	c.issuer.SetBroken(true)
	fails(t, c.ask(c.authorizer(c.options)), "HTTP 500")
	c.issuer.SetBroken(false)
	if err := c.ask(c.authorizer(c.options)); err != nil {
		t.Error(err)
	}
}
