package mcpclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shell is a server that is a shell script.
func shell(t *testing.T, lines ...string) mcpclient.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return mcpclient.Options{Command: []string{file}, ConnectTimeout: 5 * time.Second}
}

// The reason why a server did not start is one line that says each thing once, and the thing that matters.
func TestTheReasonOfAFailedStartReadsWell(t *testing.T) {
	hanging := fault(t, "FAULT_AT=initialize", "FAULT=hang")
	hanging.ConnectTimeout = 500 * time.Millisecond
	refusing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }))
	node := shell(t, `echo "node:internal/modules/cjs/loader:1228" >&2`, `echo "  throw err;" >&2`, `echo "  ^" >&2`,
		`echo "Error: Cannot find module '/srv/server.mjs'" >&2`, `for i in 1 2 3 4 5 6 7 8; do echo "    at Module.f$i (node:internal/x:$i:1) {" >&2; done`,
		`echo "  code: 'MODULE_NOT_FOUND'," >&2`, `echo "  requireStack: []" >&2`, `echo "}" >&2`, `echo "Node.js v22.0.0" >&2`, "exit 1")
	for name, tt := range map[string]struct {
		opts    mcpclient.Options
		want    string
		without string
	}{
		"it hangs":                         {hanging, "not ready within connect_timeout (500ms): handshake:", "SIGTERM"},
		"a script that is not there":       {node, "exit status 1; it wrote: Error: Cannot find module '/srv/server.mjs'", "requireStack"},
		"a program that is no server":      {shell(t, "exit 0"), "its process ended by itself with exit status 0; is it an MCP server", "(exit status 0)"},
		"a program that cannot be found":   {mcpclient.Options{Command: []string{"no-such-program-here"}}, "not found in PATH; install it", "/bin"},
		"a server over HTTP that will not": {mcpclient.Options{URL: refusing.URL}, "500", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offer := start(t, tt.opts).await("a failed start", func(o *provider.Offer) bool { return o.Status.State == provider.Backoff })
			reasons := map[string]string{"state": offer.Status.Reason}
			tt.opts.Name, tt.opts.StopGrace = "kb", 200*time.Millisecond
			report, err := mcpclient.Probe(t.Context(), &tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			last := report.Steps[len(report.Steps)-1]
			reasons["probe"] = fmt.Sprintf("%s: %v", last.Name, last.Err)
			for where, reason := range reasons {
				if !strings.Contains(reason, tt.want) || strings.Contains(reason, tt.without) {
					t.Errorf("%s: %q, want %q in it and not %q", where, reason, tt.want, tt.without)
				}
				for _, part := range []string{"handshake: handshake:", "tools/list: tools/list:", "start: start:"} {
					if strings.Contains(reason, part) {
						t.Errorf("%s says it twice: %q", where, reason)
					}
				}
				if n := strings.Count(reason, "connect_timeout"); n > 1 {
					t.Errorf("%s says it %d times: %q", where, n, reason)
				}
			}
		})
	}
}

func TestAServerWithoutAWantedToolSaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		include, exclude []string
		remark           bool
	}{
		"an include that matches nothing":    {[]string{"nothing_like_this"}, nil, true},
		"an exclude that matches everything": {nil, []string{"*"}, true},
		"an include that matches something":  {[]string{"ech*"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := fault(t)
			o.Include, o.Exclude = tt.include, tt.exclude
			offer := start(t, o).ready()
			reason := offer.Status.Reason
			if tt.remark != (reason != "") || tt.remark && (len(offer.Tools) != 0 || !strings.Contains(reason, "include and exclude leave none of") || !strings.Contains(reason, `"echo"`)) {
				t.Errorf("%d tools, reason %q", len(offer.Tools), reason)
			}
			o.Name, o.StopGrace = "kb", 200*time.Millisecond
			report, err := mcpclient.Probe(t.Context(), &o)
			if err != nil {
				t.Fatal(err)
			}
			if report.Remark != reason {
				t.Errorf("a probe says %q, the state %q", report.Remark, reason)
			}
		})
	}
}

// What a server refuses besides tools is told in one line.
func TestFaultsOfSeveralListsAreOneLine(t *testing.T) {
	server := newLibrary(mcp.ServerOptions{})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "resources/list" || method == "prompts/list" {
				return nil, errors.New(method + " is out of order")
			}
			return next(ctx, method, r)
		}
	})
	o := mcpclient.Options{Name: "kb", URL: serve(t, streamableHandler(t, server, nil)).URL, Resources: true, Prompts: true}
	report, err := mcpclient.Probe(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	last := report.Steps[len(report.Steps)-1]
	if last.Name != "resources and prompts" || last.Err == nil || strings.Contains(last.Err.Error(), "\n") || strings.Count(last.Err.Error(), "out of order") != 2 {
		t.Errorf("%s: %v", last.Name, last.Err)
	}
}
