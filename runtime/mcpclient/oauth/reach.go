package oauth

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

const (
	// requestTime bounds one exchange with an authorization server, from the connection to the end of the answer.
	requestTime = 15 * time.Second
	// maxRedirects bounds following redirects to metadata.
	maxRedirects = 5
	// maxHeaders bounds the headers of an authorization server's answer, in bytes.
	maxHeaders = 64 << 10
)

// reach makes requests to authorization servers. Which those are is the MCP server's word, so a host that the operator has
// not written is reached at public addresses only: else a server could have hermesd ask the operator's own network.
type reach struct {
	trusted      []string // host names that may be anywhere
	open, public *http.Transport
}

// newClient makes the client for authorization servers. The hosts of the addresses given are trusted.
func newClient(trusted ...string) *http.Client {
	r := &reach{open: newTransport(nil), public: newTransport(publicOnly)}
	for _, address := range trusted {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			r.trusted = append(r.trusted, u.Hostname())
		}
	}
	return &http.Client{Transport: r, Timeout: requestTime, CheckRedirect: redirect}
}

func newTransport(control func(network, address string, c syscall.RawConn) error) *http.Transport {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: requestTime, Control: control}).DialContext,
		TLSHandshakeTimeout:    requestTime,
		ResponseHeaderTimeout:  requestTime,
		MaxResponseHeaderBytes: maxHeaders,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true, // requests are rare
	}
	if control == nil {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// RoundTrip implements [http.RoundTripper].
func (r *reach) RoundTrip(req *http.Request) (*http.Response, error) {
	proxy, err := http.ProxyFromEnvironment(req)
	if err != nil || proxy != nil || slices.Contains(r.trusted, req.URL.Hostname()) {
		return r.open.RoundTrip(req) // a proxy decides itself what may be reached
	}
	resp, err := r.public.RoundTrip(req)
	if errors.Is(err, errNotPublic) {
		return nil, fmt.Errorf("%w; if the server is meant, write its issuer into oauth", err)
	}
	return resp, err
}

// errNotPublic is an address that only a host of the operator's choice may have.
var errNotPublic = errors.New("the address is not public")

// shared are addresses between a provider and its customers (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// publicOnly refuses addresses of this machine and of private networks. It sees the address after the name was resolved.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); !ip.IsGlobalUnicast() || ip.IsPrivate() || shared.Contains(ip) {
		return fmt.Errorf("%s: %w", ip, errNotPublic)
	}
	return nil
}

// redirect follows redirects of metadata, never those of a request that carries something, and never out of TLS.
func redirect(req *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	if via[0].Method != http.MethodGet || len(via) > maxRedirects || last.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return nil
}

// secure checks an address that something confidential goes to: https, or http on this machine.
func secure(name, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())) {
		return nil
	}
	return fmt.Errorf("%s %q must begin with https://", name, address)
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
