package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/runtime/mcpclient/oauth/oauthtest"
)

// person reads what is printed and opens the link in it, once.
type person struct {
	t    *testing.T
	once sync.Once
	mu   sync.Mutex
	read bytes.Buffer
	done chan struct{}
}

var link = regexp.MustCompile(`http://\S+/authorize\?\S+`)

func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read.Write(b)
	if found := link.FindString(p.read.String()); found != "" {
		p.once.Do(func() {
			go func() {
				defer close(p.done)
				resp, err := http.Get(found)
				if err != nil {
					p.t.Errorf("the browser: %v", err)
					return
				}
				resp.Body.Close()
			}()
		})
	}
	return len(b), nil
}

func TestLoggingInToAServer(t *testing.T) {
	issuer := oauthtest.NewIssuer(t)
	server := oauthtest.NewResource(t, issuer)
	dir := t.TempDir()
	config := filepath.Join(dir, "hermesd.hcl")
	text := fmt.Sprintf("state_dir = %q\nmcp_server \"notes\" {\n  url = \"%s/mcp\"\n}\n", filepath.Join(dir, "state"), server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	hermesd := func(args ...string) (string, string, int) {
		var out bytes.Buffer
		p := &person{t: t, done: make(chan struct{})}
		code := execute(context.Background(), append(args, "-c", config), nil, &out, p)
		p.once.Do(func() { close(p.done) })
		<-p.done
		return out.String(), p.read.String(), code
	}
	if out, _, code := hermesd("mcp-server", "test", "notes"); code != exitFailure || !strings.Contains(out, "hermesd mcp-server login notes") {
		t.Errorf("before the login: %d %s", code, out)
	}
	if out, said, code := hermesd("mcp-server", "login", "notes"); code != exitOK || !strings.Contains(out, "Logged in to notes, which has 1 tools") {
		t.Fatalf("the login: %d %s %s", code, out, said)
	}
	info, err := os.Stat(filepath.Join(dir, "state", "oauth", "notes.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens: %v %v", info, err)
	}
	if out, _, code := hermesd("mcp-server", "test", "notes"); code != exitOK || !strings.Contains(out, "mcp__notes__read") {
		t.Errorf("after the login: %d %s", code, out)
	}
	if out, _, code := hermesd("mcp-server", "login", "notes"); code != exitOK || !strings.Contains(out, "No login was needed") {
		t.Errorf("a second login: %d %s", code, out)
	}
	if _, _, code := hermesd("mcp-server", "logout", "notes"); code != exitOK {
		t.Errorf("the logout: %d", code)
	}
	if _, _, code := hermesd("mcp-server", "test", "notes"); code != exitFailure {
		t.Errorf("after the logout: %d", code)
	}
}
