package approval

import (
	"encoding/json"
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// LinkPath is where [Broker.Links] is mounted.
const LinkPath = "/approvals/answer"

// maxLinkBody bounds an answer that comes by a link, in bytes.
const maxLinkBody = 16 << 10

// Link is an address at which one request can be answered once by whoever has it. base is the daemon's own address, such
// as "https://desk.example.com".
func (b *Broker) Link(base string, p *Pending) (string, error) {
	token, err := seal(b.options.Key, purposeLink, &State{Items: []StateItem{{p.ID, p.Binding}}, Expires: p.Expires.UnixMilli()})
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(base, "/") + LinkPath + "?" + url.Values{"token": {token}}.Encode(), nil
}

// Links answers requests at the addresses that [Broker.Link] made. A GET shows the request and changes nothing, since
// programs follow links in messages by themselves; a POST answers it, as a form or as JSON: choice and reason.
func (b *Broker) Links() http.Handler { return http.HandlerFunc(b.serveLink) }

func (b *Broker) serveLink(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	// Not no-referrer: under that a browser sends the page's own form with "Origin: null".
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	state, err := open(b.options.Key, purposeLink, r.URL.Query().Get("token"))
	if err != nil || len(state.Items) != 1 {
		http.Error(w, "This link is not valid, or it has expired.", http.StatusForbidden)
		return
	}
	p, ok := b.pending(state.Items[0])
	switch {
	case !ok:
		http.Error(w, "This request has been answered already, or its call is gone.", http.StatusGone)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		b.showLink(w, p)
	case r.Method == http.MethodPost:
		b.answerLink(w, r, p.ID)
	default:
		h.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "Use GET or POST.", http.StatusMethodNotAllowed)
	}
}

func (b *Broker) pending(s StateItem) (*Pending, bool) {
	b.mu.Lock()
	defer b.unlock()
	it := b.items[s.ID]
	if it == nil || !it.open || it.Binding != s.Binding {
		return nil, false
	}
	p := it.Pending
	return &p, true
}

func (b *Broker) showLink(w http.ResponseWriter, p *Pending) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	err := linkPage.Execute(w, map[string]any{"Text": describe(p), "Choices": p.Choices})
	if err != nil {
		b.log.Debug("an approval page was not read to its end", "error", err)
	}
}

var linkPage = template.Must(template.New("link").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>May this run?</title>
<h1>May this run?</h1>
<pre>{{.Text}}</pre>
<form method="post"><p><label>Reason, for a refusal <input name="reason" maxlength="1000"></label></p>
<p>{{range .Choices}}<button name="choice" value="{{.}}">{{.}}</button> {{end}}</p></form>
</html>
`))

func (b *Broker) answerLink(w http.ResponseWriter, r *http.Request, id string) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLinkBody)
	d, err := linkDecision(r)
	if err != nil {
		http.Error(w, "The answer cannot be read; send choice and reason, as a form or as JSON.", http.StatusBadRequest)
		return
	}
	d.By = "link"
	switch err := b.Answer(id, d); {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, ErrChoice):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusGone)
	}
}

func linkDecision(r *http.Request) (d Decision, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "application/json" {
		var body struct {
			Choice Choice `json:"choice"`
			Reason string `json:"reason"`
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		return Decision{Choice: body.Choice, Reason: body.Reason}, err
	}
	if err := r.ParseForm(); err != nil {
		return d, err
	}
	return Decision{Choice: Choice(r.PostForm.Get("choice")), Reason: r.PostForm.Get("reason")}, nil
}
