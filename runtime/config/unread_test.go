package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hermesd/hermesd/runtime/config"
)

// partial is the environment of a command that is not the daemon.
func partial(vars map[string]string) *config.Environment {
	env := fakeEnv(vars)
	env.ReadFile = func(string) ([]byte, error) { return nil, errors.New("permission denied") }
	env.Partial = true
	return env
}

func TestWhatTheDaemonAloneCanReadIsLeftOut(t *testing.T) {
	server := func(keys string) string { return "mcp_server \"x\" {\n" + keys + "\n}\n" }
	tests := map[string]struct {
		src                 string
		block, key, source  string
		reason              string
		place, anotherPlace string
	}{
		"a secret of the environment": {server(`command = ["x"]` + "\n" + `env = { A = "b", TOKEN = secret("env:TOKEN") }`),
			`mcp_server "x"`, "env", `secret("env:TOKEN")`, "the environment variable TOKEN is not set", "mcp_server.env", "env"},
		"a secret in a text": {server(`url = "https://x"` + "\n" + `headers = { Authorization = "Bearer ${secret("env:TOKEN")}" }`),
			`mcp_server "x"`, "headers", `secret("env:TOKEN")`, "the environment variable TOKEN is not set", `mcp_server "x"`, `mcp_server "y"`},
		"a url, whose look is not checked": {server(`url = secret("env:URL")`),
			`mcp_server "x"`, "url", `secret("env:URL")`, "the environment variable URL is not set", "mcp_server", "plugin"},
		"a secret that is read by a function": {server(`command = jsondecode(secret("env:ARGV"))`),
			`mcp_server "x"`, "command", `secret("env:ARGV")`, "the environment variable ARGV is not set", "mcp_server", ""},
		"a secret that another one may replace": {server(`command = ["x", try(secret("env:A"), "b")]`),
			`mcp_server "x"`, "command", `secret("env:A")`, "the environment variable A is not set", "mcp_server", ""},
		"a file of the daemon's": {server(`url = "https://x/${secret("file:/key")}"`),
			`mcp_server "x"`, "url", `secret("file:/key")`, "permission denied", "mcp_server", ""},
		"a credential": {server(`url = secret("credential:url")`),
			`mcp_server "x"`, "url", `secret("credential:url")`, "$CREDENTIALS_DIRECTORY is not set; systemd sets it for services with LoadCredential=", "mcp_server", ""},
		"in a block within, whose rules are not checked": {server("url = \"https://x\"\noauth {\ngrant = \"client_credentials\"\nclient_id = \"x\"\nprivate_key = secret(\"env:KEY\")\n}"),
			`mcp_server "x"`, "oauth.private_key", `secret("env:KEY")`, "the environment variable KEY is not set", "mcp_server.oauth.private_key", "oauth"},
		"what another key turns on": {server("url = \"https://x\"\noauth {\ngrant = env(\"GRANT\")\nassertion_file = \"/a\"\n}"),
			`mcp_server "x"`, "oauth.grant", `env("GRANT")`, "the environment variable GRANT is not set", "mcp_server", ""},
		"in a plugin's own configuration": {"plugin \"p\" {\npath = \"/p\"\nconfig {\ntoken = secret(\"env:TOKEN\")\n}\n}\n",
			`plugin "p"`, "config.token", `secret("env:TOKEN")`, "the environment variable TOKEN is not set", "plugin", "plugin.token"},
		"a variable": {"listen {\nadmin = \"${env(\"RUN\")}/a.sock\"\n}\n",
			"listen", "admin", `env("RUN")`, "the environment variable RUN is not set", "listen.admin", "admin"},
		"outside of blocks": {`state_dir = env("STATE")`,
			"", "state_dir", `env("STATE")`, "the environment variable STATE is not set", "state_dir", ""},
		"a file": {"approvals {\ngroup = file(\"/group\")\n}\n",
			"approvals", "group", `file("/group")`, "permission denied", "approvals.group", "approvals.mode"},
		"a block that stands for a switch": {"tools {\ntool_search = tobool(env(\"SEARCH\"))\n}\n",
			"tools", "tool_search", `env("SEARCH")`, "the environment variable SEARCH is not set", "tools", ""},
		"a token, without which nobody could connect": {"agent \"local\" {\nenabled = false\n}\nagent \"a\" {\ntoken_sha256 = env(\"DIGEST\")\n}\n",
			`agent "a"`, "token_sha256", `env("DIGEST")`, "the environment variable DIGEST is not set", "agent", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg, diags := config.Parse("config.hcl", []byte(test.src), partial(nil))
			if len(diags.Items()) > 0 {
				t.Fatal(diags)
			}
			want := []config.Unread{{Block: test.block, Key: test.key, Source: test.source, Reason: test.reason}}
			if diff := cmp.Diff(want, cfg.Unread, cmpopts.IgnoreFields(config.Unread{}, "Pos")); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if u := &cfg.Unread[0]; !u.Within(test.place) || u.Within(test.anotherPlace) {
				t.Errorf("it is in %q: %v; in %q: %v", test.place, u.Within(test.place), test.anotherPlace, u.Within(test.anotherPlace))
			}
			env := partial(nil)
			env.Partial = false
			if _, diags := config.Parse("config.hcl", []byte(test.src), env); !diags.HasErrors() && !strings.Contains(test.src, "try(") {
				t.Error("the daemon takes it")
			}
		})
	}
}

func TestAPartialEnvironmentForgivesNothingElse(t *testing.T) {
	tests := map[string]struct{ src, want string }{
		"no source":                       {`state_dir = secret("vault:x")`, `write "env:NAME", "file:PATH" or "credential:NAME"`},
		"a key that is not known":         {`stat_dir = secret("env:X")`, `Unknown key "stat_dir"`},
		"a fault in another block":        {"mcp_server \"x\" {\nurl = secret(\"env:URL\")\n}\nmcp_server \"y\" {\nurl = \"nonsense\"\n}\n", "url must be a URL"},
		"a value that cannot be right":    {"mcp_server \"x\" {\nurl = secret(\"env:URL\")\nparallel = \"perhaps\"\n}\n", "parallel must be true or false"},
		"a fault of a function's operand": {`state_dir = "${env("X")}${lower(1, 2)}"`, "Too many function arguments"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, diags := config.Parse("config.hcl", []byte(test.src), partial(nil)); !diags.HasErrors() || !strings.Contains(diags.Error(), test.want) {
				t.Errorf("want %q in: %v", test.want, diags)
			}
		})
	}
}

// What a partial environment has is taken as the daemon takes it.
func TestWhatAPartialEnvironmentHasIsRead(t *testing.T) {
	cfg, env := everything(t)
	whole := *env
	whole.Partial = true
	src := strings.ReplaceAll(switchedOn(readExample(t)), `Authorization = "Bearer ${secret("env:TRACKER_TOKEN")}"`, `X-Note = "${"$"}{no template}"`)
	if diff := cmp.Diff(cfg, mustParse(t, "/etc/hermesd/config.hcl", src, &whole), sameMeaning); diff != "" {
		t.Errorf("(-whole +partial):\n%s", diff)
	}
	// Without the secrets everything else stays.
	short := mustParse(t, "/etc/hermesd/config.hcl", src, &config.Environment{Lookup: partial(nil).Lookup, Partial: true})
	if len(short.Unread) == 0 || len(short.MCPServers) != len(cfg.MCPServers) || short.StateDir != cfg.StateDir || short.Listen.Admin != cfg.Listen.Admin {
		t.Errorf("%d unread, %d servers, %s, %s", len(short.Unread), len(short.MCPServers), short.StateDir, short.Listen.Admin)
	}
}
