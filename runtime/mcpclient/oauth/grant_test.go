package oauth_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth/oauthtest"
)

const (
	bearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	exchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// ask makes one request with the authorizer's token, and returns what went wrong.
func (w *world) ask(a *oauth.Authorizer) error {
	w.t.Helper()
	resp, err := (&http.Client{Transport: a.Transport(http.DefaultTransport)}).Post(w.server.URL+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return &refused{oauth.Hint("notes", a, resp.StatusCode, resp.Header)}
	}
	return nil
}

// refused is a request that the MCP server did not take.
type refused struct{ hint string }

func (r *refused) Error() string { return "refused; " + r.hint }

// fails checks that a request fails for a reason, and that the reason holds none of the secrets.
func fails(t *testing.T, err error, want string, secrets ...string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	for _, s := range secrets {
		if err != nil && strings.Contains(err.Error(), s) {
			t.Errorf("a secret is in %v", err)
		}
	}
}

func TestAClientThatSigns(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[string]crypto.Signer{"ES256": oauthtest.NewKey(t), "RS256": rsaKey} {
		t.Run(algorithm, func(t *testing.T) {
			w := newWorld(t)
			w.issuer.RegisterKey("robot", key.Public())
			c := w.connect(w.authorizer(signing(key, algorithm)))
			c.ready(t)
			w.issuer.Forget(true, false)
			if err := c.read(t); err != nil {
				t.Errorf("after its token ended: %v", err)
			}
		})
	}
}

func signing(key crypto.Signer, algorithm string) func(*oauth.Options) {
	return func(o *oauth.Options) {
		o.Grant, o.ClientID, o.Key = oauth.ClientCredentials, "robot", &oauth.SigningKey{Signer: key, Algorithm: algorithm, ID: "k1"}
	}
}

func TestAClientWhoseSignatureIsNotTaken(t *testing.T) {
	w := newWorld(t)
	w.issuer.RegisterKey("robot", oauthtest.NewKey(t).Public())
	fails(t, w.ask(w.authorizer(signing(oauthtest.NewKey(t), "ES256"))), "invalid_client")
	before := w.issuer.Count("client_credentials")
	fails(t, w.ask(w.authorizer(signing(oauthtest.NewKey(t), "ES512"))), "takes signatures by [ES256 RS256], and the key signs by ES512")
	if w.issuer.Count("client_credentials") != before {
		t.Error("a signature was sent that the server does not take")
	}
}

func TestASecretThatTheServerRepeatsIsNotShown(t *testing.T) {
	w := newWorld(t)
	w.issuer.Register("robot", "s3cret-of-robot")
	a := w.authorizer(func(o *oauth.Options) {
		o.Grant, o.ClientID, o.ClientSecret = oauth.ClientCredentials, "robot", "another-secret"
	})
	fails(t, w.ask(a), "who is that with ***?", "another-secret")
}

func TestSecretsGoToTheWrittenIssuerOnly(t *testing.T) {
	w := newWorld(t)
	w.issuer.Register("robot", "s3cret")
	set := func(issuer string) func(*oauth.Options) {
		return func(o *oauth.Options) {
			o.Grant, o.ClientID, o.ClientSecret, o.Issuer = oauth.ClientCredentials, "robot", "s3cret", issuer
		}
	}
	fails(t, w.ask(w.authorizer(set("https://login.example.com"))), "nothing was sent there")
	if n := w.issuer.Count("client_credentials"); n != 0 {
		t.Errorf("%d requests", n)
	}
	if err := w.ask(w.authorizer(set(w.issuer.URL + "/"))); err != nil {
		t.Error(err)
	}
	fails(t, w.ask(w.authorizer(set("https://login.example.com"))), "nothing was sent there") // and what is stored is not used
}

func TestTokensOfAnotherGrantAreNotUsed(t *testing.T) {
	w := newWorld(t)
	w.login()
	w.issuer.Register("robot", "s3cret")
	a := w.authorizer(func(o *oauth.Options) {
		o.Grant, o.ClientID, o.ClientSecret = oauth.ClientCredentials, "robot", "s3cret"
	})
	if err := w.ask(a); err != nil || w.issuer.Count("client_credentials") != 1 {
		t.Errorf("got %v, %d requests", err, w.issuer.Count("client_credentials"))
	}
}

// refusals counts the requests that a server refuses for their token.
type refusals struct{ n atomic.Int32 }

func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		r.n.Add(1)
	}
	return resp, err
}

// endsIn has the stored token end after some time, whatever the issuer thinks.
func (w *world) endsIn(d time.Duration) {
	w.t.Helper()
	c := w.stored()
	c.Expires = time.Now().Add(d)
	raw, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(w.file, append(raw, ' '), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAGrantThatNeedsNobodyIsRenewedBeforeItsTokenEnds(t *testing.T) {
	const grant = "client_credentials"
	for name, c := range map[string]struct {
		left   time.Duration
		before func(*world)
		proofs *oauthtest.Proofs
		grants int
	}{
		"shortly before":                    {5 * time.Second, func(*world) {}, nil, 1},
		"shortly before, bound to a key":    {5 * time.Second, func(*world) {}, &oauthtest.Proofs{}, 1},
		"after its end":                     {-time.Second, func(w *world) { w.issuer.Forget(true, false) }, nil, 1},
		"not long before":                   {time.Minute, func(*world) {}, nil, 0},
		"not where its end is near at once": {5 * time.Second, func(w *world) { w.issuer.SetLife(5 * time.Second) }, nil, 1},
		"tried once if no other can be had": {5 * time.Second, func(w *world) { w.issuer.SetBroken(true) }, nil, 1},
		"only where the last one came from": {5 * time.Second, func(w *world) { w.moveTokens() }, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.issuer.Register("robot", "s3cret")
			w.issuer.SetProofs(c.proofs)
			a := w.authorizer(robot)
			if err := w.ask(a); err != nil {
				t.Fatal(err)
			}
			w.endsIn(c.left)
			c.before(w)
			first := w.issuer.Count(grant)
			seen := &refusals{}
			client := &http.Client{Transport: a.Transport(seen)}
			var calls sync.WaitGroup
			for range 8 {
				calls.Go(func() {
					resp, err := client.Post(w.server.URL+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				})
			}
			calls.Wait()
			if n := seen.n.Load(); n != 0 {
				t.Errorf("%d requests were refused", n)
			}
			if n := w.issuer.Count(grant) - first; n != c.grants {
				t.Errorf("%d tokens were asked for, want %d", n, c.grants)
			}
		})
	}
}

// moveTokens has the stored token be of an endpoint that the issuer no longer names.
func (w *world) moveTokens() {
	w.t.Helper()
	raw, err := os.ReadFile(w.file)
	if err == nil {
		err = os.WriteFile(w.file, []byte(strings.Replace(string(raw), `/token"`, `/old-token"`, 1)), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestATokenThatCouldNotBeRenewedIsReplacedWhenItIsRefused(t *testing.T) {
	w := newWorld(t)
	w.issuer.Register("robot", "s3cret")
	a := w.authorizer(robot)
	if err := w.ask(a); err != nil {
		t.Fatal(err)
	}
	w.endsIn(5 * time.Second)
	w.issuer.SetBroken(true)
	if err := w.ask(a); err != nil {
		t.Fatal(err)
	}
	w.issuer.SetBroken(false)
	w.issuer.Forget(true, false)
	if err := w.ask(a); err != nil {
		t.Error(err)
	}
}

// workload is a platform that signs tokens for its processes, and where it puts them.
type workload struct {
	*world
	file string
	put  func(audience string, life time.Duration) string
}

func newWorkload(t *testing.T) *workload {
	w := &workload{world: newWorld(t), file: filepath.Join(t.TempDir(), "token")}
	key := oauthtest.NewKey(t)
	w.issuer.Trust("https://platform.example.com", key.Public())
	w.put = func(audience string, life time.Duration) string {
		t.Helper()
		text := oauthtest.Sign(t, key, "JWT", jwt.MapClaims{
			"iss": "https://platform.example.com", "sub": "hermesd", "aud": audience, "exp": time.Now().Add(life).Unix(),
		})
		if err := os.WriteFile(w.file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return text
	}
	return w
}

func (w *workload) options(o *oauth.Options) {
	o.Grant, o.Assertion = oauth.WorkloadIdentity, oauth.Assertion{File: w.file}
}

func TestAWorkloadPresentsTheTokenThatItsFileHasNow(t *testing.T) {
	w := newWorkload(t)
	w.put(w.issuer.URL, time.Minute)
	c := w.connect(w.authorizer(w.options))
	c.ready(t)
	w.put(w.issuer.URL, time.Minute) // the issuer takes none twice
	w.issuer.Forget(true, false)
	if err := c.read(t); err != nil {
		t.Errorf("after its token ended: %v", err)
	}
	if n := w.issuer.Count(bearerGrant); n != 2 {
		t.Errorf("%d assertions", n)
	}
}

func TestAssertionsThatAreNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(*workload) string
		set  func(*oauth.Options)
		want string
	}{
		"one that has ended":                  {func(w *workload) string { return w.put(w.issuer.URL, -time.Second) }, nil, "has ended at"},
		"one for another server":              {func(w *workload) string { return w.put("https://other.example.com", time.Minute) }, nil, "the assertion is for https://other.example.com"},
		"one for another issuer than written": {func(w *workload) string { return w.put(w.issuer.URL, time.Minute) }, func(o *oauth.Options) { o.Issuer = "https://login.example.com" }, "nothing was sent there"},
		"a file without one":                  {func(w *workload) string { w.put("", 0); return w.write("hunter2") }, nil, "is no JWT"},
		"a file that is too big":              {func(w *workload) string { w.put("", 0); return w.write(strings.Repeat("hunter2.", 1<<16)) }, nil, "more than"},
		"no file":                             {func(*workload) string { return "hunter2" }, nil, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkload(t)
			text := c.put(w)
			a := w.authorizer(w.options, func(o *oauth.Options) {
				if c.set != nil {
					c.set(o)
				}
			})
			fails(t, w.ask(a), c.want, text)
			if n := w.issuer.Count(bearerGrant); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func (w *workload) write(text string) string {
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return text
}

func TestAnAssertionThatIsRefusedIsNotShown(t *testing.T) {
	w := newWorkload(t)
	text := w.put("https://audience.example.com", time.Minute)
	a := w.authorizer(w.options, func(o *oauth.Options) { o.Issuer = w.issuer.URL })
	fails(t, w.ask(a), "invalid_grant", text)
	if n := w.issuer.Count(bearerGrant); n != 1 {
		t.Errorf("%d tries", n)
	}
}

func TestAWorkloadsTokenForAnotherAudienceIsRefusedWithoutALoop(t *testing.T) {
	w := newWorkload(t)
	w.put(w.issuer.URL, time.Minute)
	w.issuer.SetAudience("https://other.example.com/mcp")
	fails(t, w.ask(w.authorizer(w.options)), "it does not take the token of grant workload_identity")
	if n := w.issuer.Count(bearerGrant); n != 1 {
		t.Errorf("%d tries", n)
	}
}
