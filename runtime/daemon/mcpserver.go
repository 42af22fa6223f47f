package daemon

import (
	"crypto"
	"fmt"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
)

// MCPServer is what a block says about an MCP server, for a program that connects to it beside the daemon: nothing is
// cached. A client of its own can be told how to log in before use.
func MCPServer(cfg *config.Config, block *config.MCPServer, version string) (*mcpclient.Options, error) {
	dirs, err := makeDirectories(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	secrets := configured(cfg)
	o, err := mcpOptions(cfg, block, dirs, version, secrets)
	if err != nil {
		return nil, err
	}
	o.Mask = secrets.Mask
	return o, nil
}

// configured masks the secrets of a configuration.
func configured(cfg *config.Config) *redact.Masker {
	m := &redact.Masker{}
	secrets := make([]string, len(cfg.Secrets))
	for i, s := range cfg.Secrets {
		secrets[i] = s.Value
	}
	m.Set("configuration", secrets...)
	return m
}

// Login is how a person authorizes hermesd at a server: where the link is shown, where the browser comes back to, and
// the scopes to ask for instead of the block's (nil: the block's).
type Login struct {
	Show        auth.AuthorizationCodeFetcher
	RedirectURL string
	Scopes      []string
}

// MCPServerAuthorizer is what gets and keeps the tokens of a server behind a URL. login is nil where nobody can be asked.
func MCPServerAuthorizer(cfg *config.Config, block *config.MCPServer, login *Login) (*oauth.Authorizer, error) {
	return authorizer(cfg, block, login, nil)
}

// authorizer makes one whose tokens become known to secrets, unless that is nil.
func authorizer(cfg *config.Config, block *config.MCPServer, login *Login, secrets *redact.Masker) (*oauth.Authorizer, error) {
	o, err := oauthOptions(&block.OAuth)
	if err != nil {
		return nil, fmt.Errorf("mcp_server %q: %w", block.Name, err)
	}
	o.Name, o.Server, o.File = block.Name, block.URL, filepath.Join(cfg.StateDir, "oauth", block.Name+".json")
	if secrets != nil {
		o.OnSecrets = func(held []string) { secrets.Set("mcp_server "+block.Name, held...) }
	}
	if login != nil {
		o.Show, o.RedirectURL = login.Show, login.RedirectURL
		if login.Scopes != nil {
			o.Scopes = login.Scopes
		}
	}
	return oauth.New(o)
}

// oauthOptions says how tokens are had, without whose they are.
func oauthOptions(c *config.OAuth) (*oauth.Options, error) {
	o := &oauth.Options{
		CredentialsFile: c.CredentialsFile, Grant: c.Grant, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret,
		MetadataURL: c.ClientMetadataURL, Scopes: c.Scopes, Proof: c.DPoP,
		Assertion: oauth.Assertion{Text: c.Assertion, File: c.AssertionFile},
	}
	var err error
	if o.Key, err = oauthKey(c.SigningKey, c.PrivateKeyID); err != nil || c.IDP == nil {
		return o, err
	}
	o.Provider = &oauth.IdentityProvider{Issuer: c.IDP.Issuer, ClientID: c.IDP.ClientID, ClientSecret: c.IDP.ClientSecret}
	if c.IDP.IDToken != "" || c.IDP.IDTokenFile != "" {
		o.Provider.IDToken = &oauth.Assertion{Text: c.IDP.IDToken, File: c.IDP.IDTokenFile}
	}
	o.Provider.Key, err = oauthKey(c.IDP.SigningKey, c.IDP.PrivateKeyID)
	return o, err
}

func oauthKey(read func() (crypto.Signer, string, error), id string) (*oauth.SigningKey, error) {
	signer, algorithm, err := read()
	if err != nil || signer == nil {
		return nil, err
	}
	return &oauth.SigningKey{Signer: signer, Algorithm: algorithm, ID: id}, nil
}

func mcpOptions(cfg *config.Config, block *config.MCPServer, dirs directories, version string, secrets *redact.Masker) (*mcpclient.Options, error) {
	o := &mcpclient.Options{
		Name: block.Name, Command: block.Command, Dir: block.Cwd, URL: block.URL,
		Env: block.Env, PassEnv: block.PassEnv, Headers: block.Headers, Sessions: block.Protocol != "auto",
		Include: append([]string{}, block.Tools.Include...), Exclude: block.Tools.Exclude,
		Timeout: block.Timeout, ConnectTimeout: block.ConnectTimeout, IdleTimeout: block.IdleTimeout,
		MaxLifetime: block.MaxLifetime, StopGrace: block.StopGrace,
		Backoff: supervisor.Backoff{Min: block.Backoff.Min, Max: block.Backoff.Max},
		Lazy:    block.Start == "lazy", Parallel: block.Parallel, Defer: block.Defer, Override: block.Override,
		Resources: block.Resources, Prompts: block.Prompts,
		MaxMessageBytes: int(block.MaxMessageBytes), Version: version,
		Isolation: block.Isolation, StateDir: filepath.Join(dirs.state, "plugins", block.Name),
		Sandbox: sandboxFor(cfg, dirs, block.AllowRead, block.AllowWrite, block.MaxMemory),
	}
	if block.Prefix.Set {
		o.Prefix = &block.Prefix.Text
	}
	if block.URL == "" {
		return o, nil
	}
	var err error
	o.OAuth, err = authorizer(cfg, block, nil, secrets)
	return o, err
}
