package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Listen says where agents and operators reach the daemon, and what one client may take.
type Listen struct {
	// HTTP is the address (host:port) of the MCP endpoint, the function-calling API and the pages that answer approvals;
	// "off" for none. An address that is not loopback needs a tls block and agents with tokens.
	HTTP string `key:"http" default:"127.0.0.1:7433"`
	// PublicURL is the address at which people reach the pages that answer approvals, such as "https://desk.example.com"; its
	// host and origin are accepted as those of allowed_hosts and allowed_origins. The default is the listener's own address,
	// or the first of allowed_hosts where it listens on all of the machine's.
	PublicURL string `key:"public_url"`
	// Admin is the path of the unix socket that the command line speaks to. The default is admin.sock in the first of
	// $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/hermesd and state_dir that is known.
	Admin string `key:"admin" path:"true"`
	// TLS serves HTTPS; without it the address must be loopback.
	TLS *TLS `key:"tls"`
	// AllowedHosts are Host header names accepted besides the address itself (DNS rebinding protection).
	AllowedHosts []string `key:"allowed_hosts"`
	// AllowedOrigins are Origin header values accepted besides the address itself, such as "https://desk.example.com".
	AllowedOrigins []string `key:"allowed_origins"`
	// MaxRequestBytes bounds one request body. Bodies above 64 KiB share room for sixteen of this size, until their requests are
	// answered; one agent has at most half of it, and always leaves some for others.
	MaxRequestBytes Size `key:"max_request_bytes" default:"16MiB" min:"1KiB" max:"1GiB"`
	// MaxHeaderBytes bounds the headers of one request.
	MaxHeaderBytes Size `key:"max_header_bytes" default:"64KiB" min:"4KiB" max:"1MiB"`
	// MaxConnections bounds the open connections of all clients.
	MaxConnections int `key:"max_connections" default:"1024" min:"1" max:"100000"`
	// MaxSessions bounds the live sessions of all agents. An agent opens another one only while it has fewer than are free, so
	// that it leaves room for others: one agent has at most half of them, rounded up.
	MaxSessions int `key:"max_sessions" default:"1000" min:"1" max:"100000"`
	// SessionIdle ends a session that made no request for this long.
	SessionIdle time.Duration `key:"session_idle" default:"30m" min:"1m" max:"7d"`
}

func (l *Listen) check(s *scope) {
	s.address("public_url", l.PublicURL, true)
	for _, host := range l.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			s.errorf("allowed_hosts", "Invalid value for allowed_hosts", "%q is no host: a name without scheme and path, such as \"desk.example.com\".", host)
		}
	}
	for _, origin := range l.AllowedOrigins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host) {
			s.errorf("allowed_origins", "Invalid value for allowed_origins", "An origin is what browsers send: scheme and host in lower case, without path, such as \"https://desk.example.com\".")
		}
	}
}

// Reach is the base URL at which people reach the HTTP listener, which is bound to an address (host:port); "" if that is all
// of the machine's addresses, and nothing says by which name they reach it.
func (l *Listen) Reach(bound string) string {
	if l.PublicURL != "" {
		return strings.TrimSuffix(l.PublicURL, "/")
	}
	scheme := "http"
	if l.TLS != nil {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(bound)
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		return scheme + "://" + bound
	}
	if len(l.AllowedHosts) == 0 {
		return ""
	}
	named := l.AllowedHosts[0]
	if _, _, err := net.SplitHostPort(named); err != nil {
		named = net.JoinHostPort(named, port)
	}
	return scheme + "://" + named
}

// TLS names the certificate of the HTTP listener.
type TLS struct {
	// Cert is the path of the PEM certificate chain.
	Cert string `key:"cert" path:"true" required:"true"`
	// Key is the path of the PEM private key.
	Key string `key:"key" path:"true" required:"true"`
}
