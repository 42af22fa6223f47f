package frontend

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// DefaultMaxBody bounds one request body.
	DefaultMaxBody = 4 << 20
	// maxToken bounds the Authorization header's token, in bytes.
	maxToken = 4096
)

// GateOptions configure the checks in front of an HTTP front end. The zero value works.
type GateOptions struct {
	// AllowedHosts are Host header names accepted besides loopback names and the address that the client connected to.
	AllowedHosts []string
	// AllowedOrigins are Origin values accepted besides the server's own, such as "https://desk.example.com".
	AllowedOrigins []string
	// MaxBody bounds a request body in bytes; 0 is [DefaultMaxBody].
	MaxBody int64
	// Vet decides whether the program at the other end of a local connection, which sent no token, may be the local agent;
	// nil lets every one. It is asked once for each connection.
	Vet func(Peer) error
	// Logger gets refusals at debug level; nil discards them.
	Logger *slog.Logger
}

// Gate lets a request through to a front end when it comes from where it says (no DNS rebinding, no foreign web page) and
// from an agent that is known. What passes carries its agent, see [AgentOf], and a body that is bounded, alone and together
// with those of all other requests.
type Gate struct {
	agents  Agents
	options GateOptions
	room    *room
}

// NewGate makes a gate.
func NewGate(agents Agents, opts *GateOptions) *Gate {
	g := &Gate{agents: agents}
	if opts != nil {
		g.options = *opts
	}
	g.options.MaxBody = cmp.Or(g.options.MaxBody, DefaultMaxBody)
	if g.options.Logger == nil {
		g.options.Logger = slog.New(slog.DiscardHandler)
	}
	g.room = newRoom(g.options.MaxBody)
	return g
}

// MaxBody is the bound on request bodies, in bytes.
func (g *Gate) MaxBody() int64 { return g.options.MaxBody }

// Handler puts the gate in front of next.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return g.Public(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Authorization"]) > 1 { // a proxy may have read the other
			g.refuse(w, r, http.StatusBadRequest, tool.Errorf(tool.BadRequest, "the header Authorization is there more than once; send it once"))
			return
		}
		agent, err := g.agent(r)
		if err != nil {
			challenge := `Bearer realm="hermesd"`
			if r.Header.Get("Authorization") != "" {
				challenge += `, error="invalid_token"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
			g.refuse(w, r, http.StatusUnauthorized, tool.AsError(err))
			return
		}
		leave, err := g.room.take(r, agent.Name)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			g.refuse(w, r, http.StatusServiceUnavailable, tool.AsError(err))
			return
		}
		defer leave()
		next.ServeHTTP(w, r.WithContext(WithAgent(r.Context(), agent)))
	}))
}

// Public puts the gate in front of a page that needs no agent: Host, Origin and body are checked all the same.
func (g *Gate) Public(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hostAllowed(r) {
			g.refuse(w, r, http.StatusForbidden, tool.Errorf(tool.Unauthenticated,
				"the Host header %q is not this server's; connect by its address, or add the name to listen { allowed_hosts }", Clip(r.Host, maxQuoted)))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			own, listed := ownOrigin(r, origin), slices.Contains(g.options.AllowedOrigins, origin)
			if !own && !listed {
				g.refuse(w, r, http.StatusForbidden, tool.Errorf(tool.Unauthenticated,
					"web pages of %q may not call this server; add it to listen { allowed_origins } if they should", Clip(origin, maxQuoted)))
				return
			}
			if listed && allowOrigin(w, r, origin) {
				return
			}
		}
		if r.ContentLength > g.options.MaxBody {
			g.refuse(w, r, http.StatusRequestEntityTooLarge, tool.Errorf(tool.BadRequest,
				"the request body has %d bytes, and %d are the limit (listen { max_request_bytes })", r.ContentLength, g.options.MaxBody))
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = http.MaxBytesReader(w, r.Body, g.options.MaxBody)
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, status int, err *tool.Error) {
	g.options.Logger.Debug("request refused", "status", status, "path", r.URL.Path, "remote", r.RemoteAddr, "reason", err.Message)
	WriteError(w, status, err)
}

// hostAllowed protects against DNS rebinding: a page of evil.example that resolves to 127.0.0.1 still says
// "Host: evil.example". An address is never a rebound name.
func (g *Gate) hostAllowed(r *http.Request) bool {
	host := hostname(r.Host)
	if isLoopbackName(host) || slices.Contains(g.options.AllowedHosts, host) || slices.Contains(g.options.AllowedHosts, r.Host) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && host != "" && host == hostname(local.String())
}

func ownOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

// allowOrigin lets a listed page read the answer (CORS), and reports whether it answered a preflight request itself.
func allowOrigin(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, ETag")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

func (g *Gate) agent(r *http.Request) (*disclosure.Agent, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		p, known := peerOf(r)
		agent, err := g.agents.Local(p.UID, known && !forwarded(r))
		if err != nil || g.options.Vet == nil {
			return agent, err
		}
		return agent, vet(r, g.options.Vet)
	}
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return nil, tool.Errorf(tool.Unauthenticated, "send the agent's token as `Authorization: Bearer TOKEN`")
	}
	return g.agents.ByToken(token)
}

// forwarded reports whether a proxy passed the request on: then the program at the other end of the connection is not
// the one that asks.
func forwarded(r *http.Request) bool {
	return r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Via") != ""
}

type agentKey struct{}

// WithAgent is a context whose requests are an agent's.
func WithAgent(ctx context.Context, agent *disclosure.Agent) context.Context {
	return context.WithValue(ctx, agentKey{}, agent)
}

// AgentOf is the agent of a request that passed [Gate.Handler], or of [WithAgent]; nil outside one.
func AgentOf(ctx context.Context) *disclosure.Agent {
	agent, _ := ctx.Value(agentKey{}).(*disclosure.Agent)
	return agent
}

// WriteError answers a request with an error's JSON, {"error", "code", …}.
func WriteError(w http.ResponseWriter, status int, e *tool.Error) {
	raw, err := json.Marshal(e)
	if err != nil { // an extra value that does not marshal: the message alone
		raw, err = json.Marshal(map[string]string{"error": e.Message, "code": string(e.Code)})
	}
	if err != nil {
		http.Error(w, e.Message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(raw, '\n')) // a client that does not take its answer has gone
}

// hostname cuts the port and the brackets off a Host header.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(name)
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func isLoopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// maxQuoted bounds what of a request's text an error repeats, in bytes.
const maxQuoted = 100

// Clip cuts a text to at most so many bytes, between characters.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
