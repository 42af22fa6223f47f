// Package functions serves programs that have no MCP client: they fetch the tools in the shape of their model's API, hand
// in what the model emitted, and get back what belongs into the next request.
//
//	GET  /v1/tools?format=openai|openai-responses|anthropic|gemini|mcp
//	POST /v1/calls[?format=…]
//	GET  /v1/results/ID[?offset=N&limit=N]
//
// Every answer is an object whose key is the field of the provider's request that the value belongs into, so that a
// program needs no code of its own for the shapes:
//
//	tools     all formats: the request's tools
//	messages  openai, anthropic: appended to the request's messages
//	input     openai-responses: appended to the request's input
//	contents  gemini: appended to the request's contents
//	results   plain calls of the form {"calls": [{"name", "arguments"}]}
//
// A single plain call, {"name", "arguments"}, is answered with its result as MCP has it.
package functions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The paths of the API.
const (
	ToolsPath = "/v1/tools"
	CallsPath = "/v1/calls"
	// ResultsPath is followed by a result's id.
	ResultsPath = "/v1/results/"
	HealthPath  = "/healthz"
)

// sessionClient is the client's name in sessions that nobody named.
const sessionClient = "functions"

// maxCalls bounds the calls of one request; models emit a handful.
const maxCalls = 64

// Options configure the front end. Desk and Gate are required.
type Options struct {
	Desk *frontend.Desk
	Gate *frontend.Gate
	// Results gives the rest of results that were too big to be returned whole; nil has none.
	Results Results
	// Healthy reports why the daemon cannot serve; nil means that it always can while it answers.
	Healthy func() error
	// Logger gets what clients do not see; nil discards it.
	Logger *slog.Logger
}

// Server is the front end. It keeps nothing between requests and need not be closed.
type Server struct {
	options Options
	mux     *http.ServeMux
}

// New makes the front end.
func New(opts *Options) (*Server, error) {
	if opts == nil || opts.Desk == nil || opts.Gate == nil {
		return nil, errors.New("functions: Options.Desk and Options.Gate are required")
	}
	s := &Server{options: *opts, mux: http.NewServeMux()}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	gate := s.options.Gate
	s.mux.Handle("GET "+ToolsPath, gate.Handler(http.HandlerFunc(s.tools)))
	s.mux.Handle("POST "+CallsPath, gate.Handler(http.HandlerFunc(s.calls)))
	s.mux.Handle("GET "+ResultsPath+"{id}", gate.Handler(http.HandlerFunc(s.result)))
	s.mux.Handle("GET "+HealthPath, gate.Public(http.HandlerFunc(s.health)))
	s.mux.Handle("/v1/", gate.Handler(http.HandlerFunc(s.other)))
	return s, nil
}

// Handler serves [ToolsPath], [CallsPath] and [HealthPath], and answers the rest of /v1/.
func (s *Server) Handler() http.Handler { return s.mux }

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.options.Healthy != nil {
		if err := s.options.Healthy(); err != nil {
			frontend.WriteError(w, http.StatusServiceUnavailable, tool.AsError(err))
			return
		}
	}
	s.write(w, map[string]string{"status": "ok"})
}

func (s *Server) other(w http.ResponseWriter, r *http.Request) {
	switch allow, known := map[string]string{ToolsPath: "GET, HEAD", CallsPath: "POST"}[r.URL.Path]; {
	case known:
		w.Header().Set("Allow", allow)
		frontend.WriteError(w, http.StatusMethodNotAllowed, tool.Errorf(tool.BadRequest, "%s takes %s", r.URL.Path, allow))
	default:
		frontend.WriteError(w, http.StatusNotFound, tool.Errorf(tool.BadRequest, "there is GET %s, POST %s and GET %sID", ToolsPath, CallsPath, ResultsPath))
	}
}

// tools answers GET /v1/tools.
func (s *Server) tools(w http.ResponseWriter, r *http.Request) {
	f, err := formatOf(r)
	if err != nil {
		frontend.WriteError(w, http.StatusBadRequest, err)
		return
	}
	if f == nil {
		f = &openAI
	}
	assembly := s.options.Desk.Disclosure.For(frontend.AgentOf(r.Context()))
	tag := `"` + f.name + "-" + assembly.Digest + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if match := r.Header.Get("If-None-Match"); match == tag || match == "W/"+tag || match == "*" {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.write(w, map[string]any{"tools": f.tools(assembly.Tools)})
}

// calls answers POST /v1/calls.
func (s *Server) calls(w http.ResponseWriter, r *http.Request) {
	f, refused := formatOf(r)
	if refused != nil {
		frontend.WriteError(w, http.StatusBadRequest, refused)
		return
	}
	raw, ok := frontend.ReadBody(w, r)
	if !ok {
		return
	}
	batch, refused := decode(raw, f)
	if refused != nil {
		frontend.WriteError(w, http.StatusBadRequest, refused)
		return
	}
	answer := batch.format.answer(batch, s.run(r.Context(), r, batch.calls))
	s.write(w, answer)
}

// run makes the calls as one batch and gives one result for each.
func (s *Server) run(ctx context.Context, r *http.Request, calls []call) []*tool.Result {
	agent := frontend.AgentOf(ctx)
	session := s.options.Desk.Session(agent, r.Header.Get(frontend.SessionHeader), sessionClient)
	results := make([]*tool.Result, len(calls))
	var batch []*frontend.Call
	var places []int // of the batch's calls in results
	for i, c := range calls {
		if c.err != nil {
			results[i] = c.err.Result()
			continue
		}
		places = append(places, i)
		batch = append(batch, &frontend.Call{
			Agent: agent, Session: session, Name: c.name, Arguments: c.arguments, TraceParent: r.Header.Get("traceparent"),
		})
	}
	for i, result := range s.options.Desk.DispatchAll(ctx, batch) {
		results[places[i]] = result
	}
	return results
}

func (s *Server) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		s.options.Logger.Debug("an answer was not written", "error", err)
	}
}
