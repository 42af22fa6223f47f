package oauth_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth"
	"github.com/hermesd/hermesd/runtime/mcpclient/oauth/oauthtest"
)

func both(nonce string) map[string]string {
	return map[string]string{"token": nonce, "resource": nonce}
}

func TestABoundTokenServesTheDaemonWithItsKey(t *testing.T) {
	for name, nonces := range map[string]map[string]string{"without nonces": nil, "with nonces of both servers": both("n-1")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.issuer.SetProofs(&oauthtest.Proofs{Nonces: nonces})
			w.login()
			if c := w.stored(); c.Type != "DPoP" || c.Key == "" {
				t.Errorf("stored: type %q, key %t", c.Type, c.Key != "")
			}
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
			if n := w.issuer.Count("authorize"); n != 1 {
				t.Errorf("%d logins", n)
			}
		})
	}
}

func TestABoundTokenIsRefreshedForItsKey(t *testing.T) {
	w := newWorld(t)
	w.issuer.SetProofs(&oauthtest.Proofs{Nonces: both("n-1")})
	w.issuer.SetLife(time.Second) // less than what is left in hand
	w.login()
	before := w.stored()
	w.issuer.SetLife(time.Hour)
	w.connect(w.authorizer()).ready(t)
	after := w.stored()
	if after.Access == before.Access || after.Type != "DPoP" || after.Key != before.Key {
		t.Errorf("stored: another token %t, type %q, the same key %t", after.Access != before.Access, after.Type, after.Key == before.Key)
	}
}

func TestGrantsThatNeedNobodyAreBound(t *testing.T) {
	w := newWorld(t)
	proofs := &oauthtest.Proofs{Nonces: both("n-1")}
	w.issuer.SetProofs(proofs)
	w.issuer.Register("robot", "s3cret")
	a := w.authorizer(robot)
	c := w.connect(a)
	c.ready(t)
	w.issuer.Forget(true, false)
	if err := c.read(t); err != nil {
		t.Errorf("after its token ended: %v", err)
	}
	if proofs.Seen() == 0 || w.stored().Type != "DPoP" {
		t.Errorf("%d proofs, type %q", proofs.Seen(), w.stored().Type)
	}
}

func robot(o *oauth.Options) {
	o.Grant, o.ClientID, o.ClientSecret = oauth.ClientCredentials, "robot", "s3cret"
}

func TestANonceIsAnsweredAtOnce(t *testing.T) {
	w := newWorld(t)
	w.issuer.SetProofs(&oauthtest.Proofs{Nonces: both("n-1")})
	w.issuer.Register("robot", "s3cret")
	for range 2 { // the second knows no nonce and has a token
		if err := w.ask(w.authorizer(robot)); err != nil {
			t.Error(err)
		}
	}
}

func TestNoncesThatAreNeverRightEnd(t *testing.T) {
	for server, want := range map[string]string{"token": "use_dpop_nonce", "resource": "it does not take the token"} {
		t.Run(server, func(t *testing.T) {
			w := newWorld(t)
			proofs := &oauthtest.Proofs{Nonces: map[string]string{server: "*n"}}
			w.issuer.SetProofs(proofs)
			w.issuer.Register("robot", "s3cret")
			a := w.authorizer(robot)
			fails(t, w.ask(a), want)
			seen, asked := proofs.Seen(), w.issuer.Count("client_credentials")
			if seen > 3 || asked > 2 {
				t.Errorf("%d tries, %d of them for a token", seen, asked)
			}
			fails(t, w.ask(a), want)
			if n := w.issuer.Count("client_credentials"); server == "resource" && n != asked {
				t.Errorf("a token that only lacked a nonce was replaced")
			}
		})
	}
}

func TestWhichTokensAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		proofs *oauthtest.Proofs
		bound  bool // the MCP server takes no others
		use    string
		typ    string // of the token, if there is one
		fault  string
	}{
		"servers without proofs":                                 {nil, false, oauth.ProofAuto, "", ""},
		"an authorization server with proofs":                    {&oauthtest.Proofs{}, false, oauth.ProofAuto, "DPoP", ""},
		"an MCP server that wants proofs, told by itself alone":  {&oauthtest.Proofs{Silent: true}, true, oauth.ProofAuto, "DPoP", ""},
		"proofs that the operator wants, told by nobody":         {&oauthtest.Proofs{Silent: true}, false, oauth.ProofRequired, "DPoP", ""},
		"proofs that the operator wants, of servers without":     {nil, false, oauth.ProofRequired, "", "bound to no key"},
		"a token that is not bound after all":                    {&oauthtest.Proofs{Unbound: true}, false, oauth.ProofAuto, "", ""},
		"one that is not bound where the operator wants it":      {&oauthtest.Proofs{Unbound: true}, false, oauth.ProofRequired, "", "bound to no key"},
		"one that is not bound where the MCP server wants it":    {&oauthtest.Proofs{Unbound: true}, true, oauth.ProofAuto, "", "bound to no key"},
		"an MCP server that wants proofs, and the operator none": {&oauthtest.Proofs{}, true, oauth.ProofOff, "", `dpop = "off"`},
		"an operator who wants no proofs where they are offered": {nil, false, oauth.ProofOff, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.Bound = c.bound
			if c.proofs != nil {
				w.issuer.SetProofs(c.proofs)
			}
			w.issuer.Register("robot", "s3cret")
			err := w.ask(w.authorizer(robot, func(o *oauth.Options) { o.Proof = c.use }))
			if c.fault != "" {
				fails(t, err, c.fault)
				return
			}
			if err != nil || w.stored().Type != c.typ {
				t.Errorf("got %v, type %q", err, w.stored().Type)
			}
		})
	}
}

func TestTokensThatAreNotBoundAreNotUsedWhereOnlyOthersAreTaken(t *testing.T) {
	required := func(o *oauth.Options) { o.Proof = oauth.ProofRequired }
	t.Run("one of before", func(t *testing.T) {
		w := newWorld(t)
		w.issuer.SetLife(time.Second) // less than what is left in hand
		w.login()
		before := w.issuer.Count("refresh_token")
		fails(t, w.ask(w.authorizer(required)), "log in: hermesd mcp-server login notes")
		if n := w.issuer.Count("refresh_token") - before; n != 0 {
			t.Errorf("%d refreshes", n)
		}
	})
	t.Run("the next of one that is bound", func(t *testing.T) {
		w := newWorld(t)
		w.issuer.SetProofs(&oauthtest.Proofs{})
		w.login()
		w.issuer.SetProofs(&oauthtest.Proofs{Unbound: true})
		w.issuer.Forget(true, false)
		fails(t, w.ask(w.authorizer(required)), "bound to no key")
	})
}

func TestAStoredKeyThatCannotBeReadIsNotShown(t *testing.T) {
	w := newWorld(t)
	w.issuer.SetProofs(&oauthtest.Proofs{})
	w.login()
	key := w.stored().Key
	for name, text := range map[string]string{
		"a broken key": strings.Replace(string(mustRead(t, w.file)), key, key[:20], 1),
		"no key":       strings.Replace(string(mustRead(t, w.file)), key, "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			fails(t, w.ask(w.authorizer()), "log in again: hermesd mcp-server login notes", key[:20], w.stored().Access)
		})
	}
}
