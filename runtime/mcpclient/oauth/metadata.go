package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// maxMetadata bounds a metadata document, in bytes.
	maxMetadata = 1 << 20
	// maxName bounds each address and id that a server gives, in bytes.
	maxName = 4096
)

// metadata are what an authorization server says about itself (RFC 8414, OpenID Connect Discovery).
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	Scopes                []string `json:"scopes_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	AuthAlgorithms        []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	Challenges            []string `json:"code_challenge_methods_supported"`
	ClientDocuments       bool     `json:"client_id_metadata_document_supported"`
	NamesIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
	ProofAlgorithms       []string `json:"dpop_signing_alg_values_supported"`

	guessed bool // no document was found; the endpoints are those of MCP 2025-03-26
}

// errNoDocument is an address that has no metadata document.
var errNoDocument = errors.New("there is no such document")

// readMetadata finds an issuer's metadata (MCP 2025-11-25, "Authorization Server Metadata Discovery"). own says that the
// issuer is the MCP server's own origin, which MCP 2025-03-26 takes where a server names none.
func (a *Authorizer) readMetadata(ctx context.Context, issuer string, own bool) (*metadata, error) {
	addresses, err := metadataURLs(issuer)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		m := &metadata{}
		err := a.readJSON(ctx, address, m)
		if errors.Is(err, errNoDocument) {
			continue
		}
		if err == nil {
			err = m.check(issuer, own)
		}
		if err != nil {
			return nil, fmt.Errorf("metadata of the authorization server, %s: %w", address, err)
		}
		return m, nil
	}
	base := strings.TrimSuffix(issuer, "/")
	return &metadata{
		Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register",
		Challenges: []string{challengeMethod}, guessed: true,
	}, nil
}

// metadataURLs are where an issuer's metadata may be, in the order of the specification.
func metadataURLs(issuer string) ([]string, error) {
	if err := secure("the issuer", issuer); err != nil {
		return nil, err
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	u.RawQuery, u.Fragment = "", ""
	path := strings.Trim(u.Path, "/")
	at := func(path string) string { u.Path = path; return u.String() }
	if path == "" {
		return []string{at("/.well-known/oauth-authorization-server"), at("/.well-known/openid-configuration")}, nil
	}
	return []string{
		at("/.well-known/oauth-authorization-server/" + path), at("/.well-known/openid-configuration/" + path),
		at("/" + path + "/.well-known/openid-configuration"),
	}, nil
}

// check holds the document against the issuer whose it should be, and its endpoints against the rules of [secure].
func (m *metadata) check(issuer string, own bool) error {
	if err := short(m.Issuer, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint); err != nil {
		return err
	}
	// RFC 8414 section 3.3: the issuer must be the one that the address was made of. MCP 2025-03-26 has no issuer to make
	// the address of: its base is the MCP server's address without the path. There, and there alone, an issuer below that
	// same origin is taken: whoever serves the document serves the whole origin, so nobody can pass for somebody else.
	if !sameIssuer(m.Issuer, issuer) && !(own && sameOrigin(m.Issuer, issuer)) {
		return fmt.Errorf("it is of the issuer %q instead of %q", m.Issuer, issuer)
	}
	endpoints := map[string]string{"authorization_endpoint": m.AuthorizationEndpoint, "token_endpoint": m.TokenEndpoint, "registration_endpoint": m.RegistrationEndpoint}
	for name, address := range endpoints {
		if address == "" {
			continue
		}
		if err := secure(name, address); err != nil {
			return err
		}
	}
	if m.TokenEndpoint == "" {
		return errors.New("it has no token_endpoint")
	}
	return nil
}

// short refuses texts of a server that would fill stores and messages.
func short(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxName {
			return fmt.Errorf("%q… has more than %d bytes", text[:40], maxName)
		}
	}
	return nil
}

// sameIssuer compares issuers; a slash at the end does not count.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

func sameOrigin(a, b string) bool {
	x, err := url.Parse(a)
	if err != nil {
		return false
	}
	y, err := url.Parse(b)
	return err == nil && x.Host != "" && x.Scheme == y.Scheme && x.Host == y.Host
}

// readJSON reads one document, bounded in time and size.
func (a *Authorizer) readJSON(ctx context.Context, address string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or given up
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500, resp.StatusCode == http.StatusOK && kind != "application/json":
		return errNoDocument // some servers answer every address with a page
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	data, err := readAll(resp.Body, maxMetadata)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// pick is the first of some choices that the list has, or "".
func pick(list []string, choices ...string) string {
	for _, c := range choices {
		if slices.Contains(list, c) {
			return c
		}
	}
	return ""
}
