package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/internal/procgroup"
)

// Credentials are what is stored for one server.
type Credentials struct {
	// Server is the MCP server's address as configured when they were made, Grant how.
	Server string `json:"server"`
	Grant  string `json:"grant,omitempty"`
	// Resource is what the token is for (RFC 8707), Issuer whose it is.
	Resource string `json:"resource,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
	// TokenURL and the client are where and as whom the token is refreshed, Method how the client proves itself (RFC 7591).
	// InHeader is what an earlier release stored instead: true for [secretInHeader].
	TokenURL     string   `json:"token_url,omitempty"`
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret string   `json:"client_secret,omitempty"`
	Method       string   `json:"client_method,omitempty"`
	InHeader     bool     `json:"client_secret_in_header,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	// Access ends at Expires (zero: unknown). Refresh gets the next one; "" if that takes a new login, or the grant.
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Type is "DPoP" for a token that is bound to Key (PKCS #8 in base64), else "".
	Type string `json:"token_type,omitempty"`
	Key  string `json:"dpop_key,omitempty"`
	// Identity is the login at the identity provider that the token comes from.
	Identity *identity `json:"identity,omitempty"`

	proof *proofKey // of Key
}

// access is the token, "" for none.
func (c *Credentials) access() string {
	if c == nil {
		return ""
	}
	return c.Access
}

// ends reports whether the token ends within some time.
func (c *Credentials) ends(within time.Duration) bool {
	return c != nil && !c.Expires.IsZero() && time.Until(c.Expires) <= within
}

// stamp tells whether files have changed since they were read.
type stamp [2]struct {
	at   time.Time
	size int64
}

// load returns the credentials that count now, or nil. The mutex is held.
func (a *Authorizer) load() (*Credentials, error) {
	var now stamp
	for i, path := range []string{a.opts.File, a.opts.CredentialsFile} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("credentials of server %q: %w", a.opts.Name, err)
		}
		now[i].at, now[i].size = info.ModTime(), info.Size()
	}
	if now == a.loaded {
		return a.held, nil
	}
	path := a.opts.File
	if now[0].at.IsZero() || now[1].at.After(now[0].at) {
		path = a.opts.CredentialsFile
	}
	a.held, a.loaded = nil, now
	if now == (stamp{}) {
		return nil, nil
	}
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("credentials of server %q: %w", a.opts.Name, err)
	}
	c, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("credentials of server %q: %s: %w; log in again: hermesd mcp-server login %s", a.opts.Name, path, err, a.opts.Name)
	}
	if o := &a.opts; c.Server != "" && c.Server != o.Server || c.Grant != "" && c.Grant != o.Grant || c.Issuer != "" && o.Issuer != "" && !sameIssuer(c.Issuer, o.Issuer) {
		a.log.Warn("stored credentials are for another address, grant or issuer and are not used", "server", o.Name,
			"stored_for", c.Server, "grant", c.Grant, "issuer", c.Issuer)
		return nil, nil
	}
	if a.opts.Proof == ProofRequired && c.Access != "" && c.Type != boundToken {
		a.log.Warn("the stored token is bound to no key (DPoP) and is not used", "server", a.opts.Name)
		if c.Identity == nil {
			return nil, nil
		}
		c = &Credentials{Server: c.Server, Grant: c.Grant, Identity: c.Identity}
	}
	a.held = c
	a.hide(c)
	return c, nil
}

// present are the credentials that count now, or nil.
func (a *Authorizer) present() (*Credentials, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.load()
}

// readBounded reads what the operator or another program has put there: a pipe in its place must not hold whoever has the mutex.
func readBounded(path string) ([]byte, error) {
	f, err := procgroup.OpenRegular(os.OpenFile, path, "no file with a token")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return readAll(f, maxCredentials)
}

// readAll reads what must have no more than most bytes.
func readAll(r io.Reader, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, err
}

// parse reads a stored file, or a bare access token.
func parse(data []byte) (*Credentials, error) {
	text := strings.TrimSpace(string(data))
	if !strings.HasPrefix(text, "{") {
		if text == "" || strings.ContainsAny(text, " \t\r\n") {
			return nil, errors.New("it holds neither JSON nor one token")
		}
		return &Credentials{Access: text}, nil
	}
	c := &Credentials{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, err
	}
	if c.Access == "" && c.Refresh == "" && c.Identity == nil {
		return nil, errors.New("it holds no token")
	}
	if c.Key == "" {
		if c.Type != "" {
			return nil, fmt.Errorf("its token is of type %q and has no key", said(c.Type, nil))
		}
		return c, nil
	}
	var err error
	c.proof, err = parseProofKey(c.Key)
	return c, err
}

// keep stores credentials.
func (a *Authorizer) keep(c *Credentials) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.store(c)
}

// hide tells what of credentials must not be shown. The mutex is held.
func (a *Authorizer) hide(c *Credentials) {
	if a.opts.OnSecrets == nil {
		return
	}
	list := []string{c.Access, c.Refresh, c.ClientSecret, c.Key}
	if c.Identity != nil {
		list = append(list, c.Identity.IDToken, c.Identity.Refresh)
	}
	if !slices.Equal(list, a.hidden) {
		a.opts.OnSecrets(slices.Concat(list, a.hidden))
		a.hidden = list
	}
}

// store replaces the file at once or not at all, for the user alone. The mutex is held.
func (a *Authorizer) store(c *Credentials) error {
	a.hide(c)
	content, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(a.opts.File), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(a.opts.File, append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("storing the token: %w", err)
	}
	a.loaded = stamp{} // read it again: the next look has its time
	return nil
}
