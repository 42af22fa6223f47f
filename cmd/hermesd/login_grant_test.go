package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth/oauthtest"
)

func TestAServerThatHermesdLogsInToByItself(t *testing.T) {
	issuer := oauthtest.NewIssuer(t)
	issuer.SetProofs(&oauthtest.Proofs{})
	server := oauthtest.NewResource(t, issuer)
	key := oauthtest.NewKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "hermesd.hcl")
	text := fmt.Sprintf(`state_dir = %q
mcp_server "ledger" {
  url = "%s/mcp"
  oauth {
    grant       = "client_credentials"
    issuer      = %q
    client_id   = "robot"
    private_key = secret("file:key.pem")
    dpop        = "required"
  }
}
`, filepath.Join(dir, "state"), server.URL, issuer.URL)
	pemText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for name, content := range map[string][]byte{"hermesd.hcl": []byte(text), "key.pem": pemText} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hermesd := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := execute(context.Background(), append(args, "-c", config), nil, &out, &out)
		if strings.Contains(out.String(), strings.Split(string(pemText), "\n")[1]) {
			t.Errorf("%v shows the key", args)
		}
		return out.String(), code
	}
	if out, code := hermesd("config", "check"); code != exitOK {
		t.Fatalf("the check: %d %s", code, out)
	}
	if out, code := hermesd("mcp-server", "test", "ledger"); code != exitFailure || !strings.Contains(out, "invalid_client") {
		t.Errorf("before the key is known: %d %s", code, out)
	}
	issuer.RegisterKey("robot", key.Public())
	if out, code := hermesd("mcp-server", "test", "ledger"); code != exitOK || !strings.Contains(out, "mcp__ledger__read") {
		t.Errorf("the test: %d %s", code, out)
	}
	if out, code := hermesd("mcp-server", "login", "ledger"); code != exitOK || !strings.Contains(out, `Nobody logs in to ledger: hermesd gets its tokens by grant "client_credentials". It answers and has 1 tools`) {
		t.Errorf("the login: %d %s", code, out)
	}
	issuer.SetAudience("https://other.example.com/mcp")
	issuer.Forget(true, false)
	if out, code := hermesd("mcp-server", "test", "ledger"); code != exitFailure || !strings.Contains(out, "it does not take the token of grant client_credentials") {
		t.Errorf("with a token for another server: %d %s", code, out)
	}
	if out, code := hermesd("mcp-server", "list"); code != exitOK || !strings.Contains(out, "ledger") {
		t.Errorf("the list: %d %s", code, out)
	}
}
