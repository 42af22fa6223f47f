package oauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

func TestHostileTokenEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a page":                   {text("text/html", "<html>"+strings.Repeat("no", 1000)), "is no JSON"},
		"nothing":                  {text("application/json", ""), "is no JSON"},
		"a list":                   {text("application/json", "[]"), "is no JSON"},
		"a huge answer":            {text("application/json", `{"access_token":"`+strings.Repeat("a", 1<<20)+`"}`), "more than 65536 bytes"},
		"an answer without token":  {text("application/json", `{"token_type":"Bearer"}`), "without a token"},
		"a token with a line end":  {text("application/json", `{"access_token":"a\r\nX-Evil: 1"}`), "no header can hold"},
		"a token of unknown type":  {text("application/json", `{"access_token":"a","token_type":"mac\nx"}`), `of type "mac x"`},
		"a token bound to no key":  {text("application/json", `{"access_token":"a","token_type":"DPoP"}`), "without having seen one"},
		"an error with status 200": {text("application/json", `{"error":"slow_down","error_description":"a\u0000b"}`), "slow_down a b"},
		"an endless explanation": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"error":"no","error_description":%q}`, strings.Repeat("x", 10_000))
		}, "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.issuer.SetToken(c.answer)
			err := w.ask(w.authorizer(robot))
			fails(t, err, c.want, "s3cret", "X-Evil", "\n")
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if n := w.issuer.Count("client_credentials"); n != 1 {
				t.Errorf("%d tries", n)
			}
		})
	}
}

func TestHostileRegistrationEndpoints(t *testing.T) {
	const secrets = `"client_secret":"new-s3cret","registration_access_token":"manage-s3cret"`
	refuse := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a registration that was cut":     {refuse(201, `{`+secrets+`,"client_id":"a`), "is no JSON"},
		"one that is followed by more":    {refuse(201, `{"client_id":"a",`+secrets+`}}`), "is no JSON"},
		"an id that is no text":           {refuse(201, `{"client_id":7,`+secrets+`}`), "is no JSON"},
		"one without an id":               {refuse(201, `{`+secrets+`}`), "without a client_id"},
		"a huge one":                      {refuse(201, `{"client_id":"a",`+secrets+`,"x":"`+strings.Repeat("a", 1<<20)+`"}`), "more than 65536 bytes"},
		"a page that holds secrets":       {refuse(403, `{`+secrets+`,"client_id":"a`), "answered HTTP 403"},
		"a refusal that repeats a secret": {refuse(400, `{"error":"no","error_description":"not new-s3cret, nor manage-s3cret",`+secrets+`}`), "says no not ***, nor ***"},
		"a refusal of unknown shape":      {refuse(400, `{"error":{},`+secrets+`}`), "answered HTTP 400"},
		"an endless explanation":          {refuse(400, fmt.Sprintf(`{"error":"no","error_description":%q}`, strings.Repeat("x", 10_000))), "xxx…"},
		"a way elsewhere that is no place": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "%zz"+strings.Repeat("x", 10_000))
			w.WriteHeader(302)
		}, "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.issuer.SetRegister(c.answer)
			_, person := browser(t)
			err := w.ask(w.authorizer(person))
			fails(t, err, c.want, "new-s3cret", "manage-s3cret", "\n")
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func text(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write([]byte(body))
	}
}

func TestASlowTokenEndpointIsLeft(t *testing.T) {
	w := newWorld(t)
	w.issuer.SetToken(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("{"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	fails(t, w.ask(w.authorizer(robot, func(o *oauth.Options) { o.Client = &http.Client{Timeout: 100 * time.Millisecond} })), "reading the authorization server's answer")
}

func TestASecretIsNotRedirected(t *testing.T) {
	w := newWorld(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was asked", r.Method, r.URL) }))
	t.Cleanup(elsewhere.Close)
	w.issuer.SetToken(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/token", http.StatusTemporaryRedirect)
	})
	fails(t, w.ask(w.authorizer(robot, func(o *oauth.Options) { o.Client = nil })), "HTTP 307")
}

// A server must not have hermesd ask what only hermesd can reach.
func TestAnAuthorizationServerOnAPrivateAddressIsForTheOperatorToName(t *testing.T) {
	w := newWorld(t)
	w.issuer.Register("robot", "s3cret")
	w.server.Issuer = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1)
	own := func(o *oauth.Options) { o.Client = nil }
	fails(t, w.ask(w.authorizer(robot, own)), "not public; if the server is meant, write its issuer into oauth")
	fails(t, w.ask(w.authorizer(robot, own, func(o *oauth.Options) { o.Issuer = w.server.Issuer })), `it is of the issuer "`+w.issuer.URL) // reached
}
