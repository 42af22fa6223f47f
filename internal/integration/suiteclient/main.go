// Command suiteclient is what the public conformance suite runs to test a client: it drives hermesd's MCP client, as the
// daemon does, against the server that the suite gives it, in the scenario that the suite names in the environment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/daemon"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// patience bounds one scenario.
const patience = 25 * time.Second

// task is what the suite says beside the address: MCP_CONFORMANCE_CONTEXT.
type task struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key_pem"`
	Algorithm    string `json:"signing_algorithm"`
	WorkloadJWT  string `json:"valid_jwt"`
	IDPIssuer    string `json:"idp_issuer"`
	IDPClientID  string `json:"idp_client_id"`
	IDToken      string `json:"idp_id_token"`
	ToolCalls    []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func main() {
	if err := run(os.Args[1:], os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Getenv("MCP_CONFORMANCE_CONTEXT")); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, scenario, about string) (err error) {
	if len(args) != 1 {
		return errors.New("usage: suiteclient URL")
	}
	var t task
	if about != "" {
		if err := json.Unmarshal([]byte(about), &t); err != nil {
			return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "suiteclient-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	authorizer, err := authorization(args[0], scenario, dir, &t)
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	p, err := mcpclient.New(&mcpclient.Options{
		Name: "suite", URL: args[0], OAuth: authorizer, Prefix: new(string), Parallel: true, Resources: true, Prompts: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		OnChange: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	if err := ready(ctx, p, changed); err != nil {
		return err
	}
	if scenario == "http-standard-headers" {
		read(ctx, p, changed)
	}
	return callAll(ctx, p, scenario, &t)
}

// authorization is what an operator would configure for the scenario. The suite's authorization server redirects at once.
func authorization(server, scenario, dir string, t *task) (*oauth.Authorizer, error) {
	c := config.OAuth{
		Grant: oauth.AuthorizationCode, ClientID: t.ClientID, ClientSecret: t.ClientSecret,
		ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
	}
	switch scenario {
	case "auth/client-credentials-basic":
		c.Grant = oauth.ClientCredentials
	case "auth/client-credentials-jwt":
		c.Grant, c.PrivateKey, c.SigningAlgorithm = oauth.ClientCredentials, t.PrivateKey, t.Algorithm
	case "auth/cross-app-access-complete-flow", "auth/enterprise-managed-authorization":
		c.Grant, c.IDP = oauth.EnterpriseManaged, &config.IDP{Issuer: t.IDPIssuer, ClientID: t.IDPClientID, IDToken: t.IDToken}
	case "auth/wif-jwt-bearer":
		c.Grant, c.AssertionFile = oauth.WorkloadIdentity, filepath.Join(dir, "assertion.jwt")
		if err := os.WriteFile(c.AssertionFile, []byte(t.WorkloadJWT), 0o600); err != nil {
			return nil, err
		}
	}
	block := &config.MCPServer{Name: "suite", URL: server, OAuth: c}
	login := &daemon.Login{Show: redirected, RedirectURL: "http://localhost:3000/callback"}
	return daemon.MCPServerAuthorizer(&config.Config{StateDir: dir}, block, login)
}

// redirected is a browser that goes no further than the redirect.
func redirected(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	q := back.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// ready waits for the server, or for the reason why it cannot be had.
func ready(ctx context.Context, p *mcpclient.Provider, changed <-chan struct{}) error {
	for {
		switch s := p.Offer().Status; s.State {
		case provider.Ready:
			return nil
		case provider.Backoff, provider.Quarantined:
			return errors.New(s.Reason)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read reads the first resource and gets the first prompt.
func read(ctx context.Context, p *mcpclient.Provider, changed <-chan struct{}) {
	for p.Shelf() == nil || len(p.Shelf().Resources) == 0 || len(p.Shelf().Prompts) == 0 {
		select {
		case <-changed:
		case <-time.After(2 * time.Second): // a server without them
			return
		}
	}
	for method, item := range map[string]provider.Item{provider.ReadResource: p.Shelf().Resources[0], provider.GetPrompt: p.Shelf().Prompts[0]} {
		key := map[string]string{provider.ReadResource: "uri", provider.GetPrompt: "name"}[method]
		params, err := json.Marshal(map[string]string{key: item.Own})
		if err == nil {
			_, err = p.Fetch(ctx, &provider.Fetch{Method: method, Name: item.Own, Params: params})
		}
		if err != nil {
			log.Printf("%s: %v", method, err)
		}
	}
}

// callAll makes the calls of a scenario. Unless it names some, that is every tool that is offered. A call that is refused
// is the suite's to judge.
func callAll(ctx context.Context, p *mcpclient.Provider, scenario string, t *task) error {
	offer := p.Offer()
	args := map[string]json.RawMessage{}
	switch scenario {
	case "tools_call":
		args["add_numbers"] = json.RawMessage(`{"a":5,"b":3}`)
	case "http-invalid-tool-headers":
		for i := range offer.Tools {
			args[offer.Tools[i].OwnName] = json.RawMessage(`{"region":"us-west1"}`)
		}
	case "json-schema-2020-12-preservation":
		for i := range offer.Tools {
			if offer.Tools[i].OwnName == "json_schema_2020_12_tool" {
				args["json_schema_echo"] = fmt.Appendf(nil, `{"schema":%s}`, offer.Tools[i].InputSchema)
			}
		}
	}
	for _, c := range t.ToolCalls {
		if err := call(ctx, p, c.Name, c.Arguments); err != nil {
			log.Print(err)
		}
	}
	for i := range offer.Tools {
		own := offer.Tools[i].OwnName
		if _, refused := offer.Refused[offer.Tools[i].Name]; refused || len(t.ToolCalls) > 0 || len(args) > 0 && args[own] == nil {
			continue
		}
		if err := call(ctx, p, own, args[own]); err != nil {
			log.Print(err)
			var failure *tool.Error
			if errors.As(err, &failure) && failure.Code == tool.DownstreamFailed {
				return err // what a client without a token sees
			}
		}
	}
	return nil
}

func call(ctx context.Context, p *mcpclient.Provider, own string, args json.RawMessage) error {
	offer := p.Offer()
	for i := range offer.Tools {
		d := &offer.Tools[i]
		if d.OwnName != own {
			continue
		}
		_, err := p.Invoke(ctx, &provider.Request{
			Call: &tool.Call{Agent: "suite", Tool: d.Name, Arguments: args}, Definition: d,
			Host: &provider.Host{OnAsk: accept, OnProgress: func(tool.Progress) {}},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", own, err)
		}
		return nil
	}
	return fmt.Errorf("the server has no tool %s", own)
}

// accept is a human who takes what a form proposes, and says yes.
func accept(_ context.Context, q provider.Question) (provider.Answer, error) {
	var form struct {
		Properties map[string]struct {
			Type    string
			Default json.RawMessage
		}
	}
	if q.Schema != nil {
		if err := json.Unmarshal(q.Schema, &form); err != nil {
			return provider.Answer{}, err
		}
	}
	content := map[string]json.RawMessage{}
	for name, field := range form.Properties {
		switch {
		case field.Default != nil:
			content[name] = field.Default
		case field.Type == "boolean":
			content[name] = json.RawMessage("true")
		}
	}
	raw, err := json.Marshal(content)
	return provider.Answer{Action: "accept", Content: raw}, err
}
