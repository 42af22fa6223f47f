package mcpclient

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
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
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("the server answered HTTP %d %s", e.status, http.StatusText(e.status))
	switch {
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		s += "; give the block's headers a valid Authorization"
	case e.status >= 300 && e.status < 400:
		s += "; set url to where it redirects"
	}
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// refused reports whether the status says that the request was not handled.
func (e *statusError) refused() bool {
	return e.status < 500 || e.status == http.StatusServiceUnavailable
}

// httpClient makes the client for one server: it never follows a redirect to another scheme, host or port, so that the
// operator's headers reach the configured server alone.
func httpClient(base string) (*http.Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          64,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !sameOrigin(req.URL, u) || req.Method != via[0].Method || len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}, nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
