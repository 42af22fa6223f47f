package oauth

import (
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Transport sends requests with the present token. One that the server refuses for its token is sent once more, with
// another token, if there is one to be had.
func (a *Authorizer) Transport(base http.RoundTripper) http.RoundTripper { return &transport{a, base} }

type transport struct {
	authorizer *Authorizer
	base       http.RoundTripper
}

// CloseIdleConnections lets [http.Client] reach the base transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	a := t.authorizer
	token, err := a.Token(req.Context())
	if err != nil {
		return nil, err
	}
	resp, err := t.base.RoundTrip(withToken(req, token))
	if err != nil || !challenged(resp) {
		return resp, err
	}
	again := req.Clone(req.Context())
	if req.Body != nil {
		if req.GetBody == nil {
			return resp, nil
		}
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil
		}
	}
	renewed, err := false, error(nil)
	if resp.StatusCode == http.StatusUnauthorized { // a new token of the same scopes would not help with 403
		renewed, err = a.renew(req.Context(), token)
	}
	switch {
	case renewed:
		discard(resp)
	case a.handler != nil:
		if err := a.authorize(req.Context(), req, resp, token); err != nil {
			return nil, err
		}
	case err != nil:
		discard(resp)
		return nil, err
	default:
		return resp, nil
	}
	if token, err = a.Token(req.Context()); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(withToken(again, token))
}

func withToken(req *http.Request, token string) *http.Request {
	if token == "" {
		return req
	}
	with := req.Clone(req.Context())
	with.Header.Set("Authorization", "Bearer "+token)
	return with
}

// challenged reports whether another token might help: the server wants one, or one with more scopes.
func challenged(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return MissingScope(resp.Header) != ""
	default:
		return false
	}
}

// MissingScope is the scope that a 403's challenge asks for (RFC 6750, insufficient_scope); "" if it asks for none.
func MissingScope(header http.Header) string {
	challenges, err := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	if err != nil {
		return ""
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			if c.Params["scope"] == "" {
				return "(not named)"
			}
			return c.Params["scope"]
		}
	}
	return ""
}

// discard ends with a response so that its connection can be used again.
func discard(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, maxTokenAnswer) //nolint:errcheck // how it ends does not matter
	resp.Body.Close()                               //nolint:errcheck
}

// Hint is what an operator reads about a refused request to a server.
func Hint(name string, status int, header http.Header) string {
	if scope := MissingScope(header); status == http.StatusForbidden && scope != "" {
		return fmt.Sprintf("the token lacks the scope %s; log in with it: hermesd mcp-server login %s --scope %q", scope, name, scope)
	}
	return fmt.Sprintf("log in: hermesd mcp-server login %s; or give the block's headers a valid Authorization", name)
}
