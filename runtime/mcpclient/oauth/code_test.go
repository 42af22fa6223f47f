package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
)

// altered is a person whose browser brings back something else.
func altered(t *testing.T, alter func(*auth.AuthorizationResult)) func(*oauth.Options) {
	return func(o *oauth.Options) {
		_, person := browser(t)
		person(o)
		show := o.Show
		o.Show = func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			back, err := show(ctx, args)
			if err == nil {
				alter(back)
			}
			return back, err
		}
	}
}

func TestWhatComesBackFromABrowserIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*auth.AuthorizationResult)
		want  string
	}{
		"the state of another login":         {func(r *auth.AuthorizationResult) { r.State = "another" }, "belongs to another login"},
		"no state":                           {func(r *auth.AuthorizationResult) { r.State = "" }, "belongs to another login"},
		"the code of another server":         {func(r *auth.AuthorizationResult) { r.Iss = "https://evil.example.com" }, "is of the authorization server"},
		"a code of a server that names none": {func(r *auth.AuthorizationResult) { r.Code = "another" }, "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fails(t, w.ask(w.authorizer(altered(t, c.alter))), c.want)
			if n := w.issuer.Count("authorization_code"); n > 1 || n == 1 && c.want != "invalid_grant" {
				t.Errorf("%d codes were sent", n)
			}
		})
	}
}

func TestMetadataOfAnotherResourceAreNotUsed(t *testing.T) {
	w := newWorld(t)
	w.server.Names = "https://other.example.com/mcp"
	w.issuer.Register("robot", "s3cret")
	fails(t, w.ask(w.authorizer(robot)), "HTTP 404") // of the server itself, which is no authorization server
	if n := w.issuer.Count("client_credentials"); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestACallThatNeedsMoreTakesNothingFromTheOthers(t *testing.T) {
	w := newWorld(t)
	w.login()
	w.server.Scope = "admin"
	_, person := browser(t)
	c := w.connect(w.authorizer(person))
	c.ready(t)
	if err := c.read(t); err != nil {
		t.Fatal(err)
	}
	if got := w.stored().Scopes; !slices.Contains(got, "admin") || !slices.Contains(got, "notes") {
		t.Errorf("the token has the scopes %v", got)
	}
}

func TestARefreshProvesTheClientAsItIsConfiguredNow(t *testing.T) {
	w := newWorld(t)
	w.issuer.Register("desk", "old-secret")
	_, person := browser(t)
	client := func(secret string) func(*oauth.Options) {
		return func(o *oauth.Options) { o.ClientID, o.ClientSecret = "desk", secret }
	}
	w.issuer.SetLife(time.Second) // less than what is left in hand
	login := w.authorizer(person, client("old-secret"), func(o *oauth.Options) {
		w.issuer.RegisterRedirect("desk", o.RedirectURL)
	})
	if err := w.ask(login); err != nil {
		t.Fatal(err)
	}
	w.issuer.SetLife(time.Hour)
	w.issuer.Register("desk", "new-secret")
	w.issuer.Forget(true, false)
	if err := w.ask(w.authorizer(client("new-secret"))); err != nil {
		t.Error(err)
	}
}

func TestHintsSayWhatCanBeDone(t *testing.T) {
	w := newWorld(t)
	person, machine := w.authorizer(), w.authorizer(robot)
	asking := w.authorizer(func(o *oauth.Options) {
		o.Show = func(context.Context, *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return nil, errors.New("nobody")
		}
	})
	scope := http.Header{"Www-Authenticate": {`DPoP error="insufficient_scope", scope="admin"`}}
	for name, c := range map[string]struct {
		a      *oauth.Authorizer
		status int
		header http.Header
		want   string
	}{
		"a person can log in":              {person, 401, nil, "log in: hermesd mcp-server login notes; or give the block's headers a valid Authorization"},
		"a person can log in with a scope": {person, 403, scope, `the token lacks the scope admin; log in with it: hermesd mcp-server login notes --scope "admin"`},
		"a person may not use it":          {person, 403, nil, "whoever this token or account is of may not use it; ask the server's owner, or give the block's headers another Authorization"},
		"a login did not help":             {asking, 401, nil, "it does not take the token of this login; ask the server's owner whether the account may use it"},
		"a login lacks a scope":            {asking, 403, scope, `the token lacks the scope admin; log in with it: hermesd mcp-server login notes --scope "admin"`},
		"nobody logs in":                   {machine, 401, nil, "it does not take the token of grant client_credentials; is the token for this server, and may the client use it?"},
		"the client lacks a scope":         {machine, 403, scope, "the token of grant client_credentials lacks the scope admin; have the authorization server allow it, and name it in scopes of the block's oauth"},
		"no tokens are had":                {nil, 401, nil, "log in: hermesd mcp-server login notes; or give the block's headers a valid Authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := oauth.Hint("notes", c.a, c.status, c.header); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
