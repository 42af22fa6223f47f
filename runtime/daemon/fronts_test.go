package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/tool"
)

// parse reads a configuration whose state is in a folder of its own.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	text = fmt.Sprintf("state_dir = %q\n", filepath.Join(dir, "state")) + text
	cfg, diags := config.Parse(filepath.Join(dir, "hermesd.hcl"), []byte(text), nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	return cfg
}

// run runs a daemon until the test ends; it answers when run returns.
func run(t *testing.T, text string) *Daemon {
	t.Helper()
	d, err := New(&Options{Config: parse(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-d.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-ended // with whatever the test broke
	})
	return d
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestHealthTellsWhyCallsCannotRun(t *testing.T) {
	cases := map[string]struct {
		allow  bool
		damage func(*testing.T, *Daemon)
		status int
		says   string
	}{
		"all is well":                           {false, func(*testing.T, *Daemon) {}, 200, `"ok"`},
		"no record can be written":              {false, loseAudit, 503, "audit_unavailable"},
		"no record, and calls run all the same": {true, loseAudit, 200, `"ok"`},
		"the database is closed": {false, func(t *testing.T, d *Daemon) {
			if err := d.store.Read().Close(); err != nil {
				t.Fatal(err)
			}
		}, 503, "the state database does not answer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := "listen {\n  http = \"127.0.0.1:0\"\n}\naudit {\n  sync = \"process\"\n}\n"
			if c.allow {
				text = strings.Replace(text, "audit {\n", "audit {\n  on_failure = \"allow\"\n", 1)
			}
			d := run(t, text)
			c.damage(t, d)
			status, body := get(t, http.DefaultClient, d.Addresses().HTTP+"/healthz")
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%d %s", status, body)
			}
			if blocked := (facts{d, &fronts{}}).Facts().Blocked; (blocked == nil) != (status == 200) {
				t.Errorf("doctor is told %v, and the health page says %d", blocked, status)
			}
		})
	}
}

// loseAudit makes the next record fail.
func loseAudit(t *testing.T, d *Daemon) {
	t.Helper()
	err := d.store.Write(t.Context(), func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "DROP TABLE audit")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	record := &tool.Record{Kind: tool.RecordStarted, CallID: "1", Agent: "desk", Tool: "wipe"}
	d.audit.Note(record)
	if _, err := d.audit.Query(t.Context(), nil); err == nil { // what waits is stored before it is read
		t.Fatal("a table that is gone was read")
	}
	err = d.audit.Started(t.Context(), record)
	if (err == nil) != (d.cfg.Audit.OnFailure == "allow") {
		t.Fatal(err)
	}
}

func TestTheServerKnowsThatARequestCameEncrypted(t *testing.T) {
	issuer := httptest.NewUnstartedServer(nil)
	issuer.StartTLS()
	t.Cleanup(issuer.Close)
	listen := &config.Listen{HTTP: "127.0.0.1:0", TLS: writeCertificate(t, &issuer.TLS.Certificates[0]), MaxConnections: 10}
	listener, base, err := listenHTTP(listen)
	if err != nil {
		t.Fatal(err)
	}
	server := frontend.NewHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS != nil)
	}), nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, body := get(t, issuer.Client(), base); body != "true" {
		t.Errorf("the request came encrypted: %s", body)
	}
	if err := errors.Join(server.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func writeCertificate(t *testing.T, c *tls.Certificate) *config.TLS {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return &config.TLS{Cert: write("cert.pem", "CERTIFICATE", c.Certificate[0]), Key: write("key.pem", "PRIVATE KEY", key)}
}

// What a request uses, such as the database, is closed after the front ends.
func TestNoRequestOutlivesAStopThatRanOutOfTime(t *testing.T) {
	w := frontendtest.New(t)
	server, err := mcp.New(&mcp.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	f := &fronts{desk: w.Desk, mcp: server, logger: slog.New(slog.NewTextHandler(&log, nil))}
	began, ended := make(chan struct{}), make(chan struct{})
	f.http = frontend.NewHTTPServer(f.counted(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	})), nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f.http.Serve(listener) }()
	asked := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + listener.Addr().String()) //nolint:noctx // it is the server that ends it
		if err == nil {
			err = resp.Body.Close()
		}
		asked <- err
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := f.close(ctx); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	default:
		t.Errorf("the request is still being answered; the log says %s", &log)
	}
	if err := f.http.Close(); err != nil { // for the client of a request that was not ended
		t.Error(err)
	}
	<-asked
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestALinkLeadsToTheDaemon(t *testing.T) {
	cases := map[string]struct{ listen, want string }{
		"its own address": {"", "http://127.0.0.1:"},
		"a public URL":    {`public_url = "https://desk.example.com"`, "https://desk.example.com/approvals/answer?token="},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := run(t, "listen {\n  http = \"127.0.0.1:0\"\n  "+c.listen+"\n}\n")
			link, err := d.answerLink(&approval.Pending{ID: "a", Binding: "b"})
			if err != nil || !strings.HasPrefix(link, c.want) {
				t.Fatalf("%s, %v", link, err)
			}
			// A proxy in front passes on the name that people used.
			u, err := url.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.Addresses().HTTP+u.RequestURI(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = u.Host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || strings.Contains(string(body), "Host header") {
				t.Errorf("%d %s, %v", resp.StatusCode, body, err)
			}
		})
	}
	t.Run("nobody knows the machine's name", func(t *testing.T) {
		listener, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		d := &Daemon{cfg: &config.Config{}, fronts: &fronts{httpListener: listener}}
		if link, err := d.answerLink(&approval.Pending{ID: "a", Binding: "b"}); link != "" || err != nil {
			t.Errorf("%q, %v", link, err)
		}
	})
}
