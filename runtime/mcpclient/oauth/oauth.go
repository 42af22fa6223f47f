// Package oauth gets and keeps the access tokens of remote MCP servers (MCP 2025-11-25, "Authorization"): discovery of the
// authorization server (RFC 9728, RFC 8414), registration (RFC 7591, or a client ID metadata document), authorization code
// with PKCE, the resource that a token is for (RFC 8707), and refresh. The official SDK does the authorization; here are
// what it leaves to its user: tokens that outlive the process, refresh that names the resource, and the HTTP transport
// that brings all of it to requests.
//
// A daemon asks nobody. It uses what `hermesd mcp-server login NAME` stored, and notices at the next request that
// something new was stored. Only an [Authorizer] with a way to show a link, or with credentials of its own (the client
// credentials grant), gets a first token.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

const (
	// requestTime bounds one request to an authorization server.
	requestTime = 15 * time.Second
	// early is how long before its end a token is replaced, so that none ends on its way.
	early = 10 * time.Second
	// maxCredentials bounds a credentials file, in bytes.
	maxCredentials = 256 << 10
)

// Grants that get a first token.
const (
	AuthorizationCode = "authorization_code"
	ClientCredentials = "client_credentials"
)

// Options say how one server's tokens are had. Server and File are required.
type Options struct {
	// Name is the server's block, for messages.
	Name string
	// Server is the address of the MCP server. Tokens go nowhere else, and stored ones of another address are not used.
	Server string
	// File keeps the tokens, readable for the user alone.
	File string
	// CredentialsFile has tokens that somebody else provides: the access token as plain text, or what File would hold. It
	// is used until File is younger; "" for none.
	CredentialsFile string
	// Grant is [AuthorizationCode] ("") or [ClientCredentials].
	Grant string
	// ClientID and ClientSecret are those of a registration at the authorization server; without them the client registers
	// itself.
	ClientID, ClientSecret string
	// MetadataURL is the address of a client ID metadata document, used where the authorization server takes one ("": none).
	MetadataURL string
	// Scopes are asked for instead of those that the server names.
	Scopes []string
	// Show, if set, lets a person authorize: it shows the link and returns what came back. RedirectURL is where to.
	Show        auth.AuthorizationCodeFetcher
	RedirectURL string
	// Client makes the requests to authorization servers (nil: one with time limits).
	Client *http.Client
	// Logger gets what the operator should know (nil: discarded).
	Logger *slog.Logger
}

// Authorizer gets and keeps one server's tokens. Its methods may be called from any goroutine.
type Authorizer struct {
	opts    Options
	log     *slog.Logger
	handler auth.OAuthHandler // nil where nothing gets a first token

	authorizing sync.Mutex // one authorization at a time
	resource    string     // that the authorization under way is for; guarded by authorizing

	mu     sync.Mutex // one refresh at a time
	held   *Credentials
	loaded stamp
}

// New checks the options and reads nothing yet.
func New(opts *Options) (*Authorizer, error) {
	a := &Authorizer{opts: *opts, log: opts.Logger}
	o := &a.opts
	if o.Server == "" || o.File == "" {
		return nil, errors.New("oauth: a server and a file are required")
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: requestTime}
	}
	var err error
	switch {
	case o.Grant == ClientCredentials:
		if o.ClientSecret == "" {
			return nil, fmt.Errorf("oauth: grant %q needs client_id and client_secret", o.Grant)
		}
		a.handler, err = extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{Credentials: o.registered(), HTTPClient: o.Client})
	case o.Grant != "" && o.Grant != AuthorizationCode:
		return nil, fmt.Errorf("oauth: unknown grant %q; use %q or %q", o.Grant, AuthorizationCode, ClientCredentials)
	case o.Show != nil:
		a.handler, err = a.byCode()
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return a, nil
}

// registered are the credentials of a registration, or nil.
func (o *Options) registered() *oauthex.ClientCredentials {
	if o.ClientID == "" {
		return nil
	}
	c := &oauthex.ClientCredentials{ClientID: o.ClientID}
	if o.ClientSecret != "" {
		c.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
	}
	return c
}

// byCode is the SDK's handler of the authorization code grant, with our storage behind it.
func (a *Authorizer) byCode() (auth.OAuthHandler, error) {
	o := &a.opts
	config := &auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: o.registered(),
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "hermesd", RedirectURIs: []string{o.RedirectURL},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		RedirectURL:         o.RedirectURL,
		RequestRefreshToken: true,
		Client:              o.Client,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if link, err := url.Parse(args.URL); err == nil {
				a.resource = link.Query().Get("resource")
			}
			return o.Show(ctx, args)
		},
		NewTokenSource: func(_ context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			err := a.keep(&Credentials{
				Server: o.Server, Resource: a.resource, TokenURL: config.Endpoint.TokenURL,
				ClientID: config.ClientID, ClientSecret: config.ClientSecret, InHeader: config.Endpoint.AuthStyle == oauth2.AuthStyleInHeader,
				Scopes: config.Scopes, Access: token.AccessToken, Refresh: token.RefreshToken, Expires: token.Expiry,
			})
			return oauth2.StaticTokenSource(token), err
		},
	}
	if o.MetadataURL != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.MetadataURL}
	}
	if len(o.Scopes) > 0 {
		config.ScopeFilter = func([]string) []string { return o.Scopes }
	}
	return auth.NewAuthorizationCodeHandler(config)
}

// Token is the access token to send now, refreshed if it is about to end; "" if there is none.
func (a *Authorizer) Token(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load()
	if err != nil || c == nil {
		return "", err
	}
	if c.Expires.IsZero() || time.Until(c.Expires) > early || c.Refresh == "" {
		return c.Access, nil
	}
	fresh, err := a.refresh(ctx, c)
	if err == nil {
		return fresh.Access, nil
	}
	if time.Now().Before(c.Expires) {
		a.log.Warn("the access token could not be refreshed; the present one is still good", "server", a.opts.Name, "error", err)
		return c.Access, nil
	}
	return "", err
}

// renew looks for another token than one that the server refused, and reports whether there is one.
func (a *Authorizer) renew(ctx context.Context, refused string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load()
	if err != nil || c == nil {
		return false, err
	}
	if c.Access != refused {
		return true, nil
	}
	if c.Refresh == "" {
		return false, nil
	}
	_, err = a.refresh(ctx, c)
	return err == nil, err
}

// authorize gets a new token for a request that the server answered with a challenge. It takes over the response's body.
func (a *Authorizer) authorize(ctx context.Context, req *http.Request, resp *http.Response, refused string) error {
	a.authorizing.Lock()
	defer a.authorizing.Unlock()
	if token, err := a.Token(ctx); err == nil && token != "" && token != refused && resp.StatusCode == http.StatusUnauthorized {
		return resp.Body.Close() // somebody else has just authorized
	}
	if err := a.handler.Authorize(ctx, req, resp); err != nil {
		return fmt.Errorf("authorization: %w", err)
	}
	if a.opts.Grant != ClientCredentials {
		return nil // kept by NewTokenSource
	}
	source, err := a.handler.TokenSource(ctx)
	if err != nil || source == nil {
		return err
	}
	token, err := source.Token()
	if err != nil {
		return fmt.Errorf("authorization: %w", err)
	}
	return a.keep(&Credentials{Server: a.opts.Server, Access: token.AccessToken, Expires: token.Expiry})
}

// Forget deletes what is stored.
func (a *Authorizer) Forget() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held, a.loaded = nil, stamp{}
	if err := os.Remove(a.opts.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
