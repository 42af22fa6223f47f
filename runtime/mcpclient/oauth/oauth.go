// Package oauth gets and keeps the access tokens of remote MCP servers (MCP 2025-11-25, "Authorization", and its extensions):
// discovery of the authorization server (RFC 9728, RFC 8414), registration (RFC 7591, or a client ID metadata document),
// authorization code with PKCE, grants that need nobody (RFC 6749 section 4.4, RFC 7523, RFC 8693), the resource that a
// token is for (RFC 8707), tokens bound to a key (RFC 9449), refresh, and the HTTP transport that brings all of it to
// requests.
//
// A daemon asks nobody. It uses what `hermesd mcp-server login NAME` stored, and notices at the next request that
// something new was stored. Only an [Authorizer] with a way to show a link, or of a grant that needs nobody, gets a first
// token.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

const (
	// early is how long before its end a token is replaced, so that none ends on its way.
	early = 10 * time.Second
	// maxCredentials bounds a file with credentials, in bytes.
	maxCredentials = 256 << 10
)

// Grants that get a first token.
const (
	// AuthorizationCode: a person agrees once.
	AuthorizationCode = "authorization_code"
	// ClientCredentials: hermesd has an account of its own.
	ClientCredentials = "client_credentials"
	// WorkloadIdentity: the platform that hermesd runs on says who it is.
	WorkloadIdentity = "workload_identity"
	// EnterpriseManaged: the company's identity provider decides.
	EnterpriseManaged = "enterprise_managed"
)

// Whether tokens are bound to a key (RFC 9449, DPoP).
const (
	// ProofAuto: where the servers say that they can.
	ProofAuto = "auto"
	// ProofRequired: always; another token is not used.
	ProofRequired = "required"
	// ProofOff: never.
	ProofOff = "off"
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
	// Grant is [AuthorizationCode] ("") or one of the others.
	Grant string
	// Issuer is the only authorization server that is asked for tokens of this server; "" takes the one that the server
	// names.
	Issuer string
	// ClientID is that of a registration at the authorization server, and ClientSecret or Key what proves it. Without
	// them the client registers itself.
	ClientID, ClientSecret string
	Key                    *SigningKey
	// MetadataURL is the address of a client ID metadata document, used where the authorization server takes one ("": none).
	MetadataURL string
	// Scopes are asked for instead of those that the server names.
	Scopes []string
	// Proof is [ProofAuto] ("") or one of the others.
	Proof string
	// Assertion is what [WorkloadIdentity] presents.
	Assertion Assertion
	// Provider is whom [EnterpriseManaged] asks.
	Provider *IdentityProvider
	// Show, if set, lets a person authorize: it shows the link and returns what came back. RedirectURL is where to.
	Show        auth.AuthorizationCodeFetcher
	RedirectURL string
	// Client makes the requests to authorization servers (nil: one that reaches private addresses only where the operator
	// has written them).
	Client *http.Client
	// OnSecrets is told what must not be shown whenever it changes: the tokens and keys that are held, and those before them,
	// which may still be valid (nil: nobody is told). It must not block.
	OnSecrets func(held []string)
	// Logger gets what the operator should know (nil: discarded).
	Logger *slog.Logger
}

// Authorizer gets and keeps one server's tokens. Its methods may be called from any goroutine.
type Authorizer struct {
	opts  Options
	log   *slog.Logger
	grant func(context.Context, *target) (*Credentials, error) // nil where nothing gets a first token

	authorizing sync.Mutex // one authorization at a time; taken before mu
	last        string     // access token that is used until the server refuses it, see regrant
	nonces      nonces

	mu     sync.Mutex // one refresh at a time
	held   *Credentials
	loaded stamp
	hidden []string // of held, as OnSecrets knows them
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
	if o.Grant == "" {
		o.Grant = AuthorizationCode
	}
	if !slices.Contains([]string{"", ProofAuto, ProofRequired, ProofOff}, o.Proof) {
		return nil, fmt.Errorf("oauth: unknown use of proofs %q; use %q, %q or %q", o.Proof, ProofAuto, ProofRequired, ProofOff)
	}
	trusted := []string{o.Server, o.Issuer}
	switch o.Grant {
	case AuthorizationCode:
		if o.Show != nil {
			a.grant = a.authorizeByCode
		}
	case ClientCredentials:
		if o.ClientID == "" || (o.ClientSecret == "") == (o.Key == nil) {
			return nil, fmt.Errorf("oauth: grant %q needs a client id, and a secret or a key", o.Grant)
		}
		a.grant = a.authorizeAsClient
	case WorkloadIdentity:
		if err := o.Assertion.check("assertion"); err != nil {
			return nil, err
		}
		a.grant = a.authorizeAsWorkload
	case EnterpriseManaged:
		if o.ClientID == "" || o.Provider == nil || o.Provider.Issuer == "" || o.Provider.ClientID == "" {
			return nil, fmt.Errorf("oauth: grant %q needs a client id, and an identity provider with issuer and client id", o.Grant)
		}
		if o.Provider.IDToken != nil {
			if err := o.Provider.IDToken.check("ID token"); err != nil {
				return nil, err
			}
		}
		trusted = append(trusted, o.Provider.Issuer)
		a.grant = a.authorizeByProvider
	default:
		return nil, fmt.Errorf("oauth: unknown grant %q; use %q, %q, %q or %q", o.Grant, AuthorizationCode, ClientCredentials, WorkloadIdentity, EnterpriseManaged)
	}
	if o.Client == nil {
		o.Client = newClient(trusted...)
	}
	return a, nil
}

// AsksPerson reports whether a first token takes a person who logs in.
func (a *Authorizer) AsksPerson() bool {
	o := &a.opts
	return o.Grant == AuthorizationCode || o.Grant == EnterpriseManaged && o.Provider.IDToken == nil
}

// Token is the access token to send now, refreshed if it is about to end; "" if there is none.
func (a *Authorizer) Token(ctx context.Context) (string, error) {
	c, err := a.current(ctx)
	return c.access(), err
}

// current are the credentials to use now, renewed if the token is about to end; nil if there are none.
func (a *Authorizer) current(ctx context.Context) (*Credentials, error) {
	a.mu.Lock()
	c, err := a.load()
	if err == nil && c.ends(early) && c.Refresh == "" && a.regrants(c) {
		a.mu.Unlock() // regrant takes authorizing first
		return a.regrant(ctx, c)
	}
	defer a.mu.Unlock()
	if err != nil || !c.ends(early) || c.Refresh == "" {
		return c, err
	}
	fresh, err := a.refresh(ctx, c)
	if err == nil {
		return fresh, nil
	}
	if !c.ends(0) {
		a.log.Warn("the access token could not be refreshed; the present one is still good", "server", a.opts.Name, "error", err)
		return c, nil
	}
	return nil, err
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

// authorize gets a new token for a server that answered with a challenge. It takes over the response's body.
func (a *Authorizer) authorize(ctx context.Context, resp *http.Response, refused string) error {
	discard(resp)
	a.authorizing.Lock()
	defer a.authorizing.Unlock()
	if c, err := a.present(); err == nil && c.access() != "" && c.access() != refused && resp.StatusCode == http.StatusUnauthorized {
		return nil // somebody else has just authorized
	}
	t, err := a.discover(ctx, resp.StatusCode, resp.Header)
	if err != nil {
		return fmt.Errorf("authorization: %w", err)
	}
	c, err := a.grant(ctx, t)
	if err != nil {
		return fmt.Errorf("authorization: %w", err)
	}
	return a.keep(c)
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
