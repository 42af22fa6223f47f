package mcpclient

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

const (
	// dialTimeout bounds making a TCP and TLS connection.
	dialTimeout = 10 * time.Second
	// maxRedirects bounds following redirects on the same host.
	maxRedirects = 5
)

// statusError is an HTTP answer other than success.
type statusError struct {
	status int
	text   string
	hint   string // what to do; "" if that is not known
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("the server answered HTTP %d %s", e.status, http.StatusText(e.status))
	switch {
	case e.hint != "":
		s += "; " + e.hint
	case e.status >= 300 && e.status < 400:
		s += "; set url to where it redirects"
	}
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// newStatusError says what the server answered instead of success.
func newStatusError(o *Options, resp *http.Response, text string) *statusError {
	e := &statusError{status: resp.StatusCode, text: text}
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		e.hint = oauth.Hint(o.Name, o.authorizer(), e.status, resp.Header)
	}
	if wait := retryAfter(resp.Header); wait > 0 && (e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable) {
		e.hint = fmt.Sprintf("try again in %v", wait)
	}
	return e
}

// retryAfter is how long a server wants to be left alone (RFC 9110, Retry-After), in whole seconds; 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	given := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(given, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(given); err == nil {
		return time.Until(at).Round(time.Second)
	}
	return 0
}

// authorizer brings access tokens to requests; nil where the operator's own headers do.
func (o *Options) authorizer() *oauth.Authorizer {
	if hasAuthorization(o.Headers) {
		return nil
	}
	return o.OAuth
}

// refused reports whether the status says that the request was not handled.
func (e *statusError) refused() bool {
	return e.status < 500 || e.status == http.StatusServiceUnavailable
}

// httpClient makes the client for one server: it never follows a redirect to another scheme, host or port, so that the
// operator's headers reach the configured server alone.
func httpClient(o *Options) (*http.Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper = &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	if a := o.authorizer(); a != nil {
		transport = a.Transport(transport)
	}
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !sameOrigin(req.URL, u) || req.Method != via[0].Method || len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}, nil
}

func hasAuthorization(headers map[string]string) bool {
	for name := range headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
