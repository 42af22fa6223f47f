package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hermesd/hermesd/internal/redact"
)

const (
	// maxTokenAnswer bounds the answer of a token or registration endpoint, in bytes.
	maxTokenAnswer = 64 << 10
	// maxSaid bounds what is repeated of a server's own words, in bytes.
	maxSaid = 300
	// longest is the longest life of a token that is believed.
	longest = 10 * 365 * 24 * time.Hour
)

// tokenRequest asks a token endpoint for a token.
type tokenRequest struct {
	endpoint, issuer string
	form             url.Values
	client           *client
	key              *proofKey // nil: without proof
}

// tokenAnswer is what a token endpoint gives (RFC 6749 section 5.1, RFC 8693 section 2.2.1, OpenID Connect).
type tokenAnswer struct {
	Access    string      `json:"access_token"`
	Type      string      `json:"token_type"`
	Refresh   string      `json:"refresh_token"`
	ExpiresIn json.Number `json:"expires_in"`
	Scope     string      `json:"scope"`
	Identity  string      `json:"id_token"`
	Issued    string      `json:"issued_token_type"`

	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// refusal is a token endpoint's no.
type refusal struct {
	code, text string
	status     int
}

func (r *refusal) Error() string {
	if r.code == "" {
		return fmt.Sprintf("the authorization server answered HTTP %d", r.status)
	}
	return strings.TrimSpace(fmt.Sprintf("the authorization server says %s %s", r.code, r.text))
}

// requestToken sends one request, and once more if the server wants its nonce in the proof.
func (a *Authorizer) requestToken(ctx context.Context, r *tokenRequest) (*tokenAnswer, error) {
	endpoint, err := url.Parse(r.endpoint)
	if err != nil {
		return nil, err
	}
	nonce := a.nonces.of(endpoint)
	answer, err := a.postToken(ctx, endpoint, r, nonce)
	var no *refusal
	if r.key == nil || !errors.As(err, &no) || no.code != needsNonce {
		return answer, err
	}
	if next := a.nonces.of(endpoint); next != nonce {
		return a.postToken(ctx, endpoint, r, next)
	}
	return nil, err
}

// postToken is one exchange.
func (a *Authorizer) postToken(ctx context.Context, endpoint *url.URL, r *tokenRequest, nonce string) (*tokenAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := r.client.prove(r.form, header, r.issuer); err != nil {
		return nil, err
	}
	if r.key != nil {
		proof, err := r.key.prove(http.MethodPost, endpoint, "", nonce)
		if err != nil {
			return nil, err
		}
		header.Set(proofHeader, proof)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), strings.NewReader(r.form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header = header
	resp, err := a.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or given up
	a.nonces.note(endpoint, resp.Header)
	data, err := readAll(resp.Body, maxTokenAnswer)
	if err != nil {
		return nil, fmt.Errorf("reading the authorization server's answer: %w", err)
	}
	return readAnswer(resp.StatusCode, data, r.secrets())
}

// do sends a request to an authorization server. An error that is longer than an address may be repeats what the server said,
// such as where it redirects to, and is bounded like everything that is repeated; any other keeps its cause.
func (a *Authorizer) do(req *http.Request) (*http.Response, error) {
	resp, err := a.opts.Client.Do(req)
	if err != nil && len(err.Error()) > maxName {
		return nil, errors.New(said(err.Error(), nil))
	}
	return resp, err
}

// secrets are what of a request must not be repeated, should the server do so.
func (r *tokenRequest) secrets() []string {
	list := []string{r.client.secret}
	for _, key := range []string{"assertion", "client_assertion", "client_secret", "code", "code_verifier", "refresh_token", "subject_token"} {
		list = append(list, r.form.Get(key))
	}
	return list
}

// readAnswer takes in what a token endpoint answered.
func readAnswer(status int, data []byte, secrets []string) (*tokenAnswer, error) {
	answer := &tokenAnswer{}
	err := json.Unmarshal(data, answer)
	switch {
	case err == nil && answer.Error != "" || status != http.StatusOK:
		return nil, &refusal{code: said(answer.Error, secrets), text: said(answer.Description, secrets), status: status}
	case err != nil:
		return nil, errors.New("the authorization server's answer is no JSON; is its token endpoint the right one?")
	case answer.Access == "":
		return nil, errors.New("the authorization server answered without a token")
	case strings.ContainsFunc(answer.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the authorization server answered with a token that no header can hold")
	}
	return answer, nil
}

// said is a server's own text: one line, bounded, without the secrets that it may repeat.
func said(text string, secrets []string) string {
	text = redact.New(secrets...).Mask(text)
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}

// ends is when the token ends; zero if that is not said.
func (t *tokenAnswer) ends(now time.Time) time.Time {
	seconds, err := t.ExpiresIn.Int64()
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(min(seconds, int64(longest/time.Second))) * time.Second)
}
