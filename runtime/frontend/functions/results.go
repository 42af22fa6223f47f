package functions

import (
	"net/http"
	"strconv"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Results are kept for the session that they were returned to.
type Results interface {
	// Page returns the piece of a result from offset on, in characters, for JSON. A limit of 0 leaves it to the daemon.
	Page(agent, session, id string, offset, limit int) (any, *tool.Error)
}

// result answers GET /v1/results/ID: a piece of a result that was too big to be returned whole.
func (s *Server) result(w http.ResponseWriter, r *http.Request) {
	if s.options.Results == nil {
		frontend.WriteError(w, http.StatusNotFound, tool.Errorf(tool.NotAvailable, "no results are kept here"))
		return
	}
	offset, err := number(r, "offset")
	limit, limitErr := number(r, "limit")
	if err != nil || limitErr != nil {
		frontend.WriteError(w, http.StatusBadRequest, tool.Errorf(tool.BadRequest, "offset and limit are numbers of characters"))
		return
	}
	agent := frontend.AgentOf(r.Context())
	session := s.options.Desk.Session(agent, r.Header.Get(frontend.SessionHeader), sessionClient)
	page, refused := s.options.Results.Page(agent.Name, session, r.PathValue("id"), offset, limit)
	switch {
	case refused == nil:
		s.write(w, page)
	case refused.Code == tool.InvalidArguments:
		frontend.WriteError(w, http.StatusBadRequest, refused)
	default:
		frontend.WriteError(w, http.StatusNotFound, refused)
	}
}

func number(r *http.Request, key string) (int, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return 0, nil
	}
	return strconv.Atoi(text)
}
