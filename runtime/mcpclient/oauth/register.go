package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// registration is what a registration endpoint answers (RFC 7591 sections 3.2.1 and 3.2.2).
type registration struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Method       string `json:"token_endpoint_auth_method"`
	Manage       string `json:"registration_access_token"` // RFC 7592; not used, and not shown

	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// register finds the client to be: the operator's own registration, the document that says who hermesd is, or a
// registration made now (RFC 7591).
func (a *Authorizer) register(ctx context.Context, server *metadata) (*client, error) {
	o := &a.opts
	switch {
	case o.ClientID != "":
		return registered(o.ClientID, o.ClientSecret, o.Key, server)
	case o.MetadataURL != "" && server.ClientDocuments:
		return &client{id: o.MetadataURL, method: noProof}, nil
	case server.RegistrationEndpoint == "":
		return nil, fmt.Errorf("the authorization server %s lets no client register itself; register hermesd there and write client_id into oauth", server.Issuer)
	}
	got, err := a.requestRegistration(ctx, server.RegistrationEndpoint)
	switch {
	case err != nil && server.guessed:
		return nil, fmt.Errorf("the server wants an authorization and does not say who gives it, and its own address %s gives none: registering there: %w; "+
			`ask the server's owner; a token of theirs goes into the block's headers: { Authorization = "Bearer ${secret("env:NAME")}" }`, server.Issuer, err)
	case err != nil:
		return nil, fmt.Errorf("registering at the authorization server %s: %w; register hermesd there by hand and write client_id into the block's oauth, or ask the server's owner", server.Issuer, err)
	}
	if err := short(got.ClientID, got.ClientSecret); err != nil {
		return nil, errors.New("the registration at the authorization server is too long to be kept")
	}
	c := &client{id: got.ClientID, secret: got.ClientSecret, method: got.Method}
	switch {
	case c.secret == "":
		c.method = noProof
	case c.method != secretInForm:
		c.method = secretInHeader // RFC 7591 section 2: what holds where nothing is said
	}
	return c, nil
}

// requestRegistration is one exchange. (The SDK's would repeat an answer that it cannot read, with the secrets in it.)
func (a *Authorizer) requestRegistration(ctx context.Context, endpoint string) (*registration, error) {
	body, err := json.Marshal(&oauthex.ClientRegistrationMetadata{
		ClientName: "hermesd", RedirectURIs: []string{a.opts.RedirectURL}, ApplicationType: applicationType(a.opts.RedirectURL),
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := a.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or given up
	data, err := readAll(resp.Body, maxTokenAnswer)
	if err != nil {
		return nil, fmt.Errorf("reading the authorization server's answer: %w", err)
	}
	return readRegistration(resp.StatusCode, data)
}

// readRegistration takes in what a registration endpoint answered. An error repeats nothing of it but the server's own
// explanation: a broken answer may hold a secret as well as a whole one.
func readRegistration(status int, data []byte) (*registration, error) {
	r := &registration{}
	err := json.Unmarshal(data, r)
	switch {
	case err == nil && r.Error != "" || status != http.StatusCreated && status != http.StatusOK:
		if err != nil {
			r = &registration{}
		}
		secrets := []string{r.ClientSecret, r.Manage}
		return nil, &refusal{code: said(r.Error, secrets), text: said(r.Description, secrets), status: status}
	case err != nil:
		return nil, errors.New("the authorization server's answer is no JSON; is its registration endpoint the right one?")
	case r.ClientID == "":
		return nil, errors.New("the authorization server answered without a client_id")
	}
	return r, nil
}

// applicationType is native for a program that waits for the browser on its own machine (OpenID Connect registration).
func applicationType(redirect string) string {
	if u, err := url.Parse(redirect); err == nil && !loopback(u.Hostname()) {
		return "web"
	}
	return "native"
}
