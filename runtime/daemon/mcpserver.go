package daemon

import (
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

// MCPServer is what a block says about an MCP server, for a program that connects to it beside the daemon: nothing is
// cached. A client of its own can be told how to log in before use.
func MCPServer(cfg *config.Config, block *config.MCPServer, version string) (*mcpclient.Options, error) {
	dirs, err := makeDirectories(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	return mcpOptions(cfg, block, dirs, version)
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
	o := &oauth.Options{
		Name: block.Name, Server: block.URL, File: filepath.Join(cfg.StateDir, "oauth", block.Name+".json"),
		CredentialsFile: block.OAuth.CredentialsFile, Grant: block.OAuth.Grant,
		ClientID: block.OAuth.ClientID, ClientSecret: block.OAuth.ClientSecret, MetadataURL: block.OAuth.ClientMetadataURL,
		Scopes: block.OAuth.Scopes,
	}
	if login != nil {
		o.Show, o.RedirectURL = login.Show, login.RedirectURL
		if login.Scopes != nil {
			o.Scopes = login.Scopes
		}
	}
	return oauth.New(o)
}

func mcpOptions(cfg *config.Config, block *config.MCPServer, dirs directories, version string) (*mcpclient.Options, error) {
	o := &mcpclient.Options{
		Name: block.Name, Command: block.Command, Dir: block.Cwd, URL: block.URL,
		Env: block.Env, PassEnv: block.PassEnv, Headers: block.Headers,
		Include: block.Tools.Include, Exclude: block.Tools.Exclude,
		Timeout: block.Timeout, ConnectTimeout: block.ConnectTimeout, IdleTimeout: block.IdleTimeout,
		MaxLifetime: block.MaxLifetime, StopGrace: block.StopGrace,
		Lazy: block.Start == "lazy", Parallel: block.Parallel, Defer: block.Defer, Override: block.Override,
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
	authorizer, err := MCPServerAuthorizer(cfg, block, nil)
	if err != nil {
		return nil, err
	}
	o.OAuth = authorizer
	return o, nil
}
