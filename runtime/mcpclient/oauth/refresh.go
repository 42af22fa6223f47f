package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxTokenAnswer bounds the answer of a token endpoint, in bytes.
const maxTokenAnswer = 64 << 10

// errLogin is what only a new login mends.
var errLogin = errors.New("the login has ended")

// refresh gets the next token (RFC 6749 section 6), for the same resource as the last (RFC 8707), and stores it. The mutex
// is held.
func (a *Authorizer) refresh(ctx context.Context, c *Credentials) (*Credentials, error) {
	next, err := a.ask(ctx, c)
	if errors.Is(err, errLogin) {
		gone := *c
		gone.Refresh, gone.Expires = "", time.Time{} // the access token is tried as long as the server takes it
		err = errors.Join(fmt.Errorf("%w; log in again: hermesd mcp-server login %s", err, a.opts.Name), a.store(&gone))
	}
	if err != nil {
		return nil, fmt.Errorf("refreshing the access token of server %q: %w", a.opts.Name, err)
	}
	return next, a.store(next)
}

// ask sends the request.
func (a *Authorizer) ask(ctx context.Context, c *Credentials) (*Credentials, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.Refresh}}
	if c.Resource != "" {
		form.Set("resource", c.Resource)
	}
	if !c.InHeader {
		form.Set("client_id", c.ClientID)
		if c.ClientSecret != "" {
			form.Set("client_secret", c.ClientSecret)
		}
	}
	// Whoever wanted the token may leave, but the answer must not be lost: the old refresh token may be worth nothing by then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if c.InHeader {
		req.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(c.ClientSecret))
	}
	resp, err := a.opts.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or given up
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		return nil, err
	}
	return c.next(resp.StatusCode, data, time.Now())
}

// next takes in what the token endpoint answered. What it leaves out stays as it was.
func (c *Credentials) next(status int, data []byte, now time.Time) (*Credentials, error) {
	var answer struct {
		Access      string      `json:"access_token"`
		Refresh     string      `json:"refresh_token"`
		ExpiresIn   json.Number `json:"expires_in"`
		Scope       string      `json:"scope"`
		Error       string      `json:"error"`
		Description string      `json:"error_description"`
	}
	err := json.Unmarshal(data, &answer)
	switch {
	case answer.Error == "invalid_grant" || answer.Error == "invalid_client" || answer.Error == "unauthorized_client":
		return nil, fmt.Errorf("%w: the authorization server says %s %s", errLogin, answer.Error, answer.Description)
	case status != http.StatusOK:
		return nil, fmt.Errorf("the authorization server answered HTTP %d %s %s", status, answer.Error, answer.Description)
	case err != nil:
		return nil, fmt.Errorf("the authorization server's answer cannot be read: %w", err)
	case answer.Access == "":
		return nil, errors.New("the authorization server answered without a token")
	}
	n := *c
	n.Access, n.Expires = answer.Access, time.Time{}
	if seconds, err := answer.ExpiresIn.Int64(); err == nil && seconds > 0 {
		n.Expires = now.Add(time.Duration(min(seconds, 10*365*24*3600)) * time.Second)
	}
	if answer.Refresh != "" {
		n.Refresh = answer.Refresh
	}
	if answer.Scope != "" {
		n.Scopes = strings.Fields(answer.Scope)
	}
	return &n, nil
}
