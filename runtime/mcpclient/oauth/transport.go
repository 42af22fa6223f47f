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
	c, err := a.current(req.Context())
	if err != nil {
		return nil, err
	}
	resp, err := t.send(req, c)
	if err != nil || !challenged(resp) {
		return resp, err
	}
	next, ok := again(req)
	if !ok {
		return resp, nil
	}
	renewed, err := false, error(nil)
	if resp.StatusCode == http.StatusUnauthorized { // a new token of the same scopes would not help with 403
		renewed, err = a.renew(req.Context(), c.access())
	}
	switch {
	case renewed:
		discard(resp)
	case a.grant != nil:
		if err := a.authorize(req.Context(), resp, c.access()); err != nil {
			return nil, err
		}
	case err != nil:
		discard(resp)
		return nil, err
	default:
		return resp, nil
	}
	if c, err = a.current(req.Context()); err != nil {
		return nil, err
	}
	return t.send(next, c)
}

// send sends a request with a token, and once more if the server wants its nonce in the proof.
func (t *transport) send(req *http.Request, c *Credentials) (*http.Response, error) {
	nonces := &t.authorizer.nonces
	nonce := nonces.of(req.URL)
	with, err := withToken(req, c, nonce)
	if err != nil {
		return nil, err
	}
	resp, err := t.base.RoundTrip(with)
	if err != nil || with.Header.Get(proofHeader) == "" {
		return resp, err
	}
	nonces.note(req.URL, resp.Header)
	if !wantsNonce(resp) || nonces.of(req.URL) == nonce {
		return resp, nil
	}
	next, ok := again(req)
	if !ok {
		return resp, nil
	}
	discard(resp)
	if with, err = withToken(next, c, nonces.of(req.URL)); err != nil {
		return nil, err
	}
	if resp, err = t.base.RoundTrip(with); err == nil {
		nonces.note(req.URL, resp.Header)
	}
	return resp, err
}

// again is a request once more, if its body can be had once more.
func again(req *http.Request) (*http.Request, bool) {
	next := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return next, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	next.Body = body
	return next, err == nil
}

func withToken(req *http.Request, c *Credentials, nonce string) (*http.Request, error) {
	if c.access() == "" {
		return req, nil
	}
	with := req.Clone(req.Context())
	if c.Type != boundToken {
		with.Header.Set("Authorization", "Bearer "+c.Access)
		return with, nil
	}
	proof, err := c.proof.prove(req.Method, req.URL, c.Access, nonce)
	if err != nil {
		return nil, fmt.Errorf("proving that the token is ours: %w", err)
	}
	with.Header.Set("Authorization", boundToken+" "+c.Access)
	with.Header.Set(proofHeader, proof)
	return with, nil
}

// challenged reports whether another token might help: the server wants one, or one with more scopes.
func challenged(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return !wantsNonce(resp)
	case http.StatusForbidden:
		return MissingScope(resp.Header) != ""
	default:
		return false
	}
}

// wantsNonce reports whether the proof lacks the server's nonce (RFC 9449 section 9).
func wantsNonce(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized && challenge(resp.Header, needsNonce) != nil
}

// challenge are the parameters of a server's challenge with some error; nil if there is none.
func challenge(header http.Header, code string) map[string]string {
	challenges, err := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if (c.Scheme == "bearer" || c.Scheme == "dpop") && c.Params["error"] == code {
			return c.Params
		}
	}
	return nil
}

// MissingScope is the scope that a 403's challenge asks for (RFC 6750, insufficient_scope); "" if it asks for none.
func MissingScope(header http.Header) string {
	params := challenge(header, "insufficient_scope")
	if params != nil && params["scope"] == "" {
		return "(not named)"
	}
	return params["scope"]
}

// discard ends with a response so that its connection can be used again.
func discard(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, maxTokenAnswer) //nolint:errcheck // how it ends does not matter
	resp.Body.Close()                               //nolint:errcheck
}

// Hint is what an operator reads about a request that a server refused. a is nil where no tokens are had for it.
func Hint(name string, a *Authorizer, status int, header http.Header) string {
	scope := MissingScope(header)
	if status != http.StatusForbidden {
		scope = ""
	}
	switch {
	case a != nil && !a.AsksPerson() && scope != "":
		return fmt.Sprintf("the token of grant %s lacks the scope %s; have the authorization server allow it, and name it in scopes of the block's oauth", a.opts.Grant, scope)
	case a != nil && !a.AsksPerson():
		return fmt.Sprintf("it does not take the token of grant %s; is the token for this server, and may the client use it?", a.opts.Grant)
	case status == http.StatusForbidden && scope == "":
		return "whoever this token or account is of may not use it; ask the server's owner, or give the block's headers another Authorization"
	case a != nil && a.opts.Show != nil && scope == "": // in the midst of a login
		return "it does not take the token of this login; ask the server's owner whether the account may use it"
	case scope != "":
		return fmt.Sprintf("the token lacks the scope %s; log in with it: hermesd mcp-server login %s --scope %q", scope, name, scope)
	}
	return fmt.Sprintf("log in: hermesd mcp-server login %s; or give the block's headers a valid Authorization", name)
}
