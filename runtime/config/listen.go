package config

import "time"

// Listen says where agents and operators reach the daemon, and what one client may take.
type Listen struct {
	// HTTP is the address (host:port) of the MCP endpoint, the function-calling API and the console; "off" for none. An
	// address that is not loopback needs a tls block and agents with tokens.
	HTTP string `key:"http" default:"127.0.0.1:7433"`
	// Admin is the path of the unix socket that the command line speaks to. The default is admin.sock in the first of
	// $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/hermesd and state_dir that is known.
	Admin string `key:"admin" path:"true"`
	// TLS serves HTTPS; without it the address must be loopback.
	TLS *TLS `key:"tls"`
	// AllowedHosts are Host header names accepted besides the address itself (DNS rebinding protection).
	AllowedHosts []string `key:"allowed_hosts"`
	// AllowedOrigins are Origin header values accepted besides the address itself, such as "https://desk.example.com".
	AllowedOrigins []string `key:"allowed_origins"`
	// MaxRequestBytes bounds one request body.
	MaxRequestBytes Size `key:"max_request_bytes" default:"16MiB" min:"1KiB" max:"1GiB"`
	// MaxHeaderBytes bounds the headers of one request.
	MaxHeaderBytes Size `key:"max_header_bytes" default:"64KiB" min:"4KiB" max:"1MiB"`
	// MaxConnections bounds the open connections of all clients.
	MaxConnections int `key:"max_connections" default:"1024" min:"1" max:"100000"`
	// MaxSessions bounds the live sessions of all agents.
	MaxSessions int `key:"max_sessions" default:"1000" min:"1" max:"100000"`
	// SessionIdle ends a session that made no request for this long.
	SessionIdle time.Duration `key:"session_idle" default:"30m" min:"1m" max:"7d"`
}

// TLS names the certificate of the HTTP listener.
type TLS struct {
	// Cert is the path of the PEM certificate chain.
	Cert string `key:"cert" path:"true" required:"true"`
	// Key is the path of the PEM private key.
	Key string `key:"key" path:"true" required:"true"`
}
