package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Assertion is a JWT that somebody else signs and replaces before it ends: the token of a workload, or a person's ID
// token. Exactly one of the two is set.
type Assertion struct {
	// Text is the JWT itself.
	Text string
	// File holds it. It is read at each use, since whoever writes it puts the next one there.
	File string
}

// signed is an assertion as it was read now. Its signature is for the server that it goes to.
type signed struct {
	text     string
	audience []string
}

// read gets the assertion that counts now. what is how messages call it. Nothing of its text is in an error.
func (s Assertion) read(what string, now time.Time) (*signed, error) {
	text, where := s.Text, "the configuration"
	if s.File != "" {
		where = s.File
		data, err := readBounded(s.File)
		if err != nil {
			return nil, fmt.Errorf("the %s: %w", what, err)
		}
		text = string(data)
	}
	text = strings.TrimSpace(text)
	var claims jwt.RegisteredClaims
	_, _, err := jwt.NewParser().ParseUnverified(text, &claims)
	if err != nil || strings.ContainsAny(text, "\r\n") { // its decoder skips newlines; no server does
		return nil, fmt.Errorf("the %s in %s is no JWT", what, where)
	}
	switch {
	case claims.ExpiresAt != nil && !now.Before(claims.ExpiresAt.Time):
		return nil, fmt.Errorf("the %s in %s has ended at %s; whatever writes it has not put the next one there", what, where, claims.ExpiresAt.UTC().Format(time.RFC3339))
	case len(text) > maxTokenAnswer:
		return nil, fmt.Errorf("the %s in %s has more than %d bytes", what, where, maxTokenAnswer)
	}
	return &signed{text, claims.Audience}, nil
}

// isFor reports whether the assertion names the server as its audience: by its issuer, or by its token endpoint (RFC 7523
// section 3).
func (s *signed) isFor(m *metadata) bool {
	return slices.ContainsFunc(s.audience, func(aud string) bool { return sameIssuer(aud, m.Issuer) || aud == m.TokenEndpoint })
}

// check refuses an assertion that comes from nowhere, or from two places.
func (s Assertion) check(what string) error {
	if (s.Text == "") == (s.File == "") {
		return errors.New("oauth: exactly one of the " + what + " and its file is required")
	}
	return nil
}
