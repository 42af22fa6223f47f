package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// target is what a token is for, and who gives it.
type target struct {
	resource string   // RFC 8707
	scopes   []string // to ask for
	server   *metadata
	bound    bool // the MCP server takes tokens with a proof only (RFC 9449)
}

// discover finds out from a challenge what token the MCP server wants, and where there is one (RFC 9728, RFC 8414).
func (a *Authorizer) discover(ctx context.Context, status int, header http.Header) (*target, error) {
	challenges, err := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, fmt.Errorf("the server's challenge cannot be read: %s", said(err.Error(), nil)) // it repeats the challenge
	}
	t := &target{}
	location, bearer := "", false
	for _, c := range challenges {
		bearer = bearer || c.Scheme == "bearer"
		t.bound = t.bound || c.Scheme == "dpop"
		if location == "" {
			location = c.Params["resource_metadata"]
		}
		if len(t.scopes) == 0 && (c.Scheme == "bearer" || c.Scheme == "dpop") {
			t.scopes = strings.Fields(c.Params["scope"])
		}
	}
	if err := short(location, strings.Join(t.scopes, " ")); err != nil {
		return nil, fmt.Errorf("the server's challenge: %w", err)
	}
	t.bound = t.bound && !bearer
	resource, err := a.readResource(ctx, location)
	if err != nil {
		return nil, err
	}
	issuer, own := "", resource == nil
	if own { // MCP 2025-03-26: the server's own origin is the authorization server
		if issuer, err = origin(a.opts.Server); err != nil {
			return nil, err
		}
		resource = &oauthex.ProtectedResourceMetadata{Resource: a.opts.Server, AuthorizationServers: []string{issuer}}
	}
	if issuer, err = a.chooseIssuer(resource.AuthorizationServers); err != nil {
		return nil, err
	}
	t.resource, t.bound = resource.Resource, t.bound || resource.DPOPBoundAccessTokensRequired
	if len(t.scopes) == 0 {
		t.scopes = resource.ScopesSupported
	}
	if t.server, err = a.readMetadata(ctx, issuer, own); err != nil {
		return nil, err
	}
	return t, a.chooseScopes(t, status == http.StatusForbidden)
}

// readResource reads the MCP server's metadata; nil if there are none.
func (a *Authorizer) readResource(ctx context.Context, location string) (*oauthex.ProtectedResourceMetadata, error) {
	server, err := url.Parse(a.opts.Server)
	if err != nil {
		return nil, err
	}
	root, err := origin(a.opts.Server)
	if err != nil {
		return nil, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	below := *server
	below.Path = wellKnown + "/" + strings.TrimLeft(server.Path, "/")
	places := []struct{ address, resource string }{{location, a.opts.Server}, {below.String(), a.opts.Server}, {root + wellKnown, root}}
	for _, p := range places {
		if p.address == "" {
			continue
		}
		m := &oauthex.ProtectedResourceMetadata{}
		err := secure("the address", p.address)
		if err == nil {
			err = a.readJSON(ctx, p.address, m)
		}
		if err == nil {
			err = short(append(m.AuthorizationServers, m.Resource, strings.Join(m.ScopesSupported, " "))...)
		}
		if err == nil && m.Resource != p.resource { // RFC 9728 section 3.3
			err = fmt.Errorf("it is of the resource %q instead of %q", m.Resource, p.resource)
		}
		if err != nil {
			level := slog.LevelWarn
			if errors.Is(err, errNoDocument) {
				level = slog.LevelDebug
			}
			a.log.Log(ctx, level, "no protected resource metadata", "server", a.opts.Name, "address", p.address, "error", err)
			continue
		}
		if len(m.AuthorizationServers) == 0 {
			return nil, errors.New("the server's metadata name no authorization server")
		}
		return m, nil
	}
	return nil, nil
}

// origin is an address without its path and query.
func origin(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), nil
}

// chooseIssuer takes the authorization server that the operator has written, else the first that the server names.
func (a *Authorizer) chooseIssuer(named []string) (string, error) {
	if a.opts.Issuer == "" {
		return named[0], nil
	}
	i := slices.IndexFunc(named, func(n string) bool { return sameIssuer(n, a.opts.Issuer) })
	if i < 0 {
		return "", fmt.Errorf("the server names the authorization server %s, and issuer in its oauth block says %s; nothing was sent there", named[0], a.opts.Issuer)
	}
	return named[i], nil
}

// chooseScopes settles what is asked for: the operator's scopes or the server's, a refresh token where one can be had, and,
// if a call needs more, what was granted before, so that nothing is taken from the others (SEP-2350).
func (a *Authorizer) chooseScopes(t *target, more bool) error {
	if len(a.opts.Scopes) > 0 {
		t.scopes = a.opts.Scopes
	}
	scopes := slices.Clone(t.scopes)
	if a.opts.Grant == AuthorizationCode && slices.Contains(t.server.Scopes, offlineAccess) {
		scopes = append(scopes, offlineAccess)
	}
	if more {
		held, err := a.present()
		if err != nil {
			return err
		}
		if held != nil && (held.Issuer == t.server.Issuer || held.Issuer == "" && held.TokenURL == t.server.TokenEndpoint) {
			scopes = append(scopes, held.Scopes...)
		}
	}
	slices.Sort(scopes)
	t.scopes = slices.Compact(scopes)
	return nil
}

// offlineAccess is the scope that asks for a refresh token (OpenID Connect, SEP-2207).
const offlineAccess = "offline_access"
