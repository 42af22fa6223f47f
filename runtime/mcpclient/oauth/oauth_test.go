package oauth_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth/oauthtest"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) {
	procgroup.ShimMain()
	goleak.VerifyTestMain(m)
}

const patience = 20 * time.Second

// world is an authorization server, an MCP server that trusts it, and where hermesd keeps its tokens.
type world struct {
	t      *testing.T
	issuer *oauthtest.Issuer
	server *oauthtest.Resource
	file   string
}

func newWorld(t *testing.T) *world {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	i := oauthtest.NewIssuer(t)
	return &world{t: t, issuer: i, server: oauthtest.NewResource(t, i), file: filepath.Join(t.TempDir(), "oauth", "notes.json")}
}

// authorizer is one that asks nobody.
func (w *world) authorizer(more ...func(*oauth.Options)) *oauth.Authorizer {
	w.t.Helper()
	o := &oauth.Options{Name: "notes", Server: w.server.URL + "/mcp", File: w.file, Client: w.server.Client()}
	for _, f := range more {
		f(o)
	}
	a, err := oauth.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// browser opens links as a person would who agrees to everything.
func browser(t *testing.T) (show func(link string), o func(*oauth.Options)) {
	t.Helper()
	show = func(link string) {
		go func() {
			resp, err := http.Get(link)
			if err != nil {
				t.Errorf("the browser: %v", err)
				return
			}
			defer resp.Body.Close()
			if page, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(page), "logged in") {
				t.Errorf("the page after the login: %q %v", page, err)
			}
		}()
	}
	callback, err := oauth.Listen(0, show)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := callback.Close(); err != nil {
			t.Error(err)
		}
	})
	return show, func(o *oauth.Options) { o.Show, o.RedirectURL = callback.Fetch, callback.RedirectURL() }
}

// client runs a provider over the server.
type client struct {
	*mcpclient.Provider
	changed chan struct{}
	stop    func()
}

func (w *world) connect(a *oauth.Authorizer) *client {
	w.t.Helper()
	c := &client{changed: make(chan struct{}, 1)}
	p, err := mcpclient.New(&mcpclient.Options{Name: "notes", URL: w.server.URL + "/mcp", OAuth: a, Parallel: true, OnChange: func() {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	c.Provider = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	c.stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(c.stop)
	return c
}

func (c *client) await(t *testing.T, what string, ok func(provider.Status) bool) provider.Status {
	t.Helper()
	deadline := time.After(patience)
	for {
		if s := c.Offer().Status; ok(s) {
			return s
		}
		select {
		case <-c.changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s: %+v", what, c.Offer().Status)
		}
	}
}

func (c *client) ready(t *testing.T) {
	t.Helper()
	c.await(t, "the server", func(s provider.Status) bool { return s.State == provider.Ready })
}

func (c *client) read(t *testing.T) error {
	t.Helper()
	d := c.Offer().Tools[0]
	_, err := c.Invoke(t.Context(), &provider.Request{Call: &tool.Call{Agent: "desk", Tool: d.Name}, Definition: &d})
	return err
}

func (w *world) stored() oauth.Credentials {
	w.t.Helper()
	data, err := os.ReadFile(w.file)
	if err != nil {
		w.t.Fatal(err)
	}
	var c oauth.Credentials
	if err := json.Unmarshal(data, &c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// login is what `hermesd mcp-server login` does.
func (w *world) login() {
	w.t.Helper()
	_, person := browser(w.t)
	c := w.connect(w.authorizer(person))
	c.ready(w.t)
	c.stop()
}

func TestALoginServesTheDaemonThatAsksNobody(t *testing.T) {
	w := newWorld(t)
	w.login()
	if n := w.issuer.Count("register"); n != 1 {
		t.Errorf("%d registrations", n)
	}
	info, err := os.Stat(w.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens: %v %v", info.Mode(), err)
	}
	if dir, err := os.Stat(filepath.Dir(w.file)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v %v", dir.Mode(), err)
	}
	if c := w.stored(); c.Resource != w.server.URL+"/mcp" || c.Refresh == "" || c.Expires.IsZero() {
		t.Errorf("stored: %+v", c)
	}
	c := w.connect(w.authorizer())
	c.ready(t)
	if err := c.read(t); err != nil {
		t.Error(err)
	}
	if n := w.issuer.Count("authorize"); n != 1 {
		t.Errorf("%d authorizations", n)
	}
}

func TestADaemonWithoutATokenSaysHowToLogInAndNoticesTheLogin(t *testing.T) {
	w := newWorld(t)
	c := w.connect(w.authorizer())
	s := c.await(t, "the refusal", func(s provider.Status) bool { return s.State == provider.Backoff })
	if !strings.Contains(s.Reason, "hermesd mcp-server login notes") {
		t.Errorf("the reason: %q", s.Reason)
	}
	w.login()
	c.ready(t) // by itself
}

func TestAnEndedTokenIsRefreshedOnceForAllCallers(t *testing.T) {
	w := newWorld(t)
	w.issuer.SetLife(time.Second) // less than what is left in hand
	w.login()
	w.issuer.SetLife(time.Hour)
	before := w.issuer.Count("refresh_token")
	c := w.connect(w.authorizer())
	c.ready(t)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if err := c.read(t); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := w.issuer.Count("refresh_token") - before; n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

func TestARefusedTokenIsRefreshedAndTheCallRunsOnce(t *testing.T) {
	w := newWorld(t)
	w.login()
	c := w.connect(w.authorizer())
	c.ready(t)
	w.issuer.Forget(true, false) // the server refuses what still looks good
	if err := c.read(t); err != nil {
		t.Error(err)
	}
	if c.Offer().Status.Restarts != 0 {
		t.Error("the connection was rebuilt")
	}
}

func TestALoginThatEndedSaysSo(t *testing.T) {
	w := newWorld(t)
	w.login()
	c := w.connect(w.authorizer())
	c.ready(t)
	w.issuer.Forget(true, true)
	for range 2 { // the second time there is nothing to refresh with
		if err := c.read(t); err == nil || !strings.Contains(err.Error(), "mcp-server login notes") {
			t.Errorf("got %v", err)
		}
	}
	if n := w.issuer.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes with a token that is gone", n)
	}
}

func TestAnAuthorizationServerOutOfOrderEndsNoLogin(t *testing.T) {
	w := newWorld(t)
	w.login()
	w.issuer.SetBroken(true)
	w.issuer.Forget(true, false)
	a := w.authorizer()
	resp, err := (&http.Client{Transport: a.Transport(http.DefaultTransport)}).Get(w.server.URL + "/mcp")
	if err == nil {
		resp.Body.Close()
		t.Fatalf("HTTP %d", resp.StatusCode)
	}
	if !strings.Contains(err.Error(), "HTTP 500") || w.stored().Refresh == "" {
		t.Errorf("got %v, stored %+v", err, w.stored())
	}
	w.issuer.SetBroken(false)
	w.connect(w.authorizer()).ready(t)
}

func TestATokenForAnotherAudienceIsRefusedWithoutALoop(t *testing.T) {
	w := newWorld(t)
	w.login()
	w.issuer.SetAudience("https://other.example.com/mcp")
	w.issuer.Forget(true, false)
	c := w.connect(w.authorizer())
	s := c.await(t, "the refusal", func(s provider.Status) bool { return s.State == provider.Backoff })
	if !strings.Contains(s.Reason, "401") {
		t.Errorf("the reason: %q", s.Reason)
	}
	c.stop()
	if n := w.issuer.Count("refresh_token"); n > 20 {
		t.Errorf("%d refreshes", n)
	}
}

func TestTokensGoToTheServerThatTheyWereMadeForOnly(t *testing.T) {
	w := newWorld(t)
	w.login()
	got := make(chan string, 1)
	other := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") })
	a := w.authorizer(func(o *oauth.Options) { o.Server = "https://elsewhere.example.com/mcp" })
	resp, err := (&http.Client{Transport: a.Transport(handlerTransport{other})}).Get("https://elsewhere.example.com/mcp")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if header := <-got; header != "" {
		t.Errorf("it was sent %q", header)
	}
}

// handlerTransport answers requests by a handler, without a network.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	h.ServeHTTP(nil, r)
	return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
}

func TestACallThatNeedsAnotherScope(t *testing.T) {
	w := newWorld(t)
	w.login()
	w.server.Scope = "admin"
	c := w.connect(w.authorizer())
	c.ready(t)
	err := c.read(t)
	if err == nil || !strings.Contains(err.Error(), `login notes --scope "admin"`) {
		t.Errorf("the daemon: %v", err)
	}
	c.stop()
	_, person := browser(t)
	c = w.connect(w.authorizer(person))
	c.ready(t)
	if err := c.read(t); err != nil {
		t.Errorf("with a person to ask: %v", err)
	}
}

func TestTokensFromACredentialsFile(t *testing.T) {
	w := newWorld(t)
	w.login()
	for name, content := range map[string]string{
		"a bare token":         w.stored().Access + "\n",
		"what a login stores":  string(mustRead(t, w.file)),
		"JSON with a token":    `{"access_token":"` + w.stored().Access + `"}`,
		"a token and a server": `{"server":"` + w.server.URL + `/mcp","access_token":"` + w.stored().Access + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "token")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			a := w.authorizer(func(o *oauth.Options) { o.File, o.CredentialsFile = filepath.Join(dir, "none.json"), path })
			c := w.connect(a)
			c.ready(t)
			c.stop()
		})
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheClientCredentialsGrantNeedsNobody(t *testing.T) {
	w := newWorld(t)
	w.issuer.Register("robot", "s3cret")
	a := w.authorizer(func(o *oauth.Options) {
		o.Grant, o.ClientID, o.ClientSecret = oauth.ClientCredentials, "robot", "s3cret"
	})
	c := w.connect(a)
	c.ready(t)
	if err := c.read(t); err != nil {
		t.Error(err)
	}
	w.issuer.Forget(true, false)
	if err := c.read(t); err != nil {
		t.Errorf("after its token ended: %v", err)
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for name, o := range map[string]oauth.Options{
		"no file":                {Server: "https://example.com"},
		"an unknown grant":       {Server: "https://example.com", File: "f", Grant: "password"},
		"a grant without secret": {Server: "https://example.com", File: "f", Grant: oauth.ClientCredentials, ClientID: "x"},
	} {
		if _, err := oauth.New(&o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// An authorization server that rotates refresh tokens has forgotten the old one by then.
func TestARefreshWhoseCallerLeftIsKept(t *testing.T) {
	w := newWorld(t)
	w.issuer.SetLife(time.Second)
	w.login()
	before := w.stored()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.authorizer().Token(gone); err != nil {
		t.Fatal(err)
	}
	if after := w.stored(); after.Refresh == before.Refresh {
		t.Error("the new token was not stored")
	}
	w.connect(w.authorizer()).ready(t)
}
