package importer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/cmd/hermesd/importer"
)

// read imports servers as Claude Desktop keeps them.
func read(t testing.TB, servers string, opts *importer.Options) *importer.Result {
	t.Helper()
	r, err := importer.Read([]importer.File{{Path: "/home/ada/desktop.json", Data: []byte(`{"mcpServers":` + servers + `}`)}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each server holds secrets that begin with "zq". None may stand in what is written or listed, and what is loaded with the
// listed variables must be what the file said.
func TestSecretsStandNowhereAndComeBack(t *testing.T) {
	for name, server := range map[string]string{
		"JSON in a variable":               `{"command":"npx","env":{"OPENAPI_MCP_HEADERS":"{\"Authorization\": \"Bearer zq_abcdef\", \"Notion-Version\": \"2022-06-28\"}"}}`,
		"a header of mcp-remote":           `{"command":"npx","args":["mcp-remote","https://x.example/mcp","--header","X-Whatever:zq1opaque9"]}`,
		"a header in one word":             `{"command":"npx","args":["mcp-remote","https://x.example/mcp","--header=Authorization: Bearer zqwords"]}`,
		"docker's --env=":                  `{"command":"docker","args":["run","--env=TOKEN=zqtok","img"]}`,
		"docker's -e":                      `{"command":"docker","args":["run","-e","TOKEN=zqtok","-e","GITHUB=zq123456","img"]}`,
		"docker's -e in one word":          `{"command":"docker","args":["run","-eTOKEN=zqtok","img"]}`,
		"a secret in a path":               `{"url":"https://mcp.zapier.com/api/mcp/s/zqQ3YzUxNjYtZDc4Zi00ZjQ1LTk0NWMtYTg1YzE5Y2U3OTk4/mcp"}`,
		"a webhook in a variable":          `{"command":"x","env":{"HOOK":"https://hooks.slack.com/services/T0000/B0000/zqbcdefghijklmnopqrstuvwx"}}`,
		"a key in a query":                 `{"url":"https://x.example/mcp?profile=p&key=zqaa-bbbb&config=zqJhIjoiYiJ9eyJhIjoi1"}`,
		"a key in an argument's query":     `{"command":"npx","args":["mcp-remote","https://x.example/mcp?apiKey=zq1111%2F2"]}`,
		"a login in the url":               `{"url":"https://user:zqpw@x.example/mcp"}`,
		"a connection string":              `{"command":"x","env":{"ACCOUNT":"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=zqcd1234+/abcd1234==;"}}`,
		"one among the arguments":          `{"command":"x","args":["--connection-string","Server=db;User Id=sa;Password=zqStr0ng!;","Server=db;Pwd=zqother"]}`,
		"a database's address":             `{"command":"x","args":["postgres://u:zqpw@h/db"],"env":{"REDIS":"redis://:zqpw123456@h:6379"}}`,
		"one whose password is not quoted": `{"command":"x","env":{"DB":"postgres://u:zq/p%w@h/db"}}`,
		"PGPASS and its like":              `{"command":"x","env":{"PGPASS":"zqword","PGPASSWORD":"zqword","GHTOKEN":"zqword","USER_PIN":"zq12","COOKIE":"sid=zqcd"}}`,
		"short options":                    `{"command":"srv","args":["-k","zqshort","-p","zqpw","-pzq22","-v"]}`,
		"a login as an option":             `{"command":"srv","args":["--auth","user:zqpass","-u","user:zqpass","--user=me:zqpass"]}`,
		"headers of one's own":             `{"url":"https://x.example/mcp","headers":{"X-Forward":"Bearer zqzz","X-Any":"zq82hdk2","X-Key":"zqword"}}`,
		"a script":                         `{"command":"sh","args":["-c","GH=zqp_0123456789 TOKEN=\"zq a b\" exec npx -y srv --key zqpref --api-key='zq x' -- plain"]}`,
		"a known form within a text":       `{"command":"x","args":["use ntn_zqcdefghijk now","a=sk-zqabcdefgh","xoxp-zq12345678"]}`,
		"a UUID":                           `{"command":"x","args":["zqb2c3d4-e5f6-7890-abcd-ef1234567890"]}`,
		"an option's value":                `{"command":"x","args":["--key=zqword","--token","zqword","--storage-account-key","zqabc"]}`,
		"a default":                        `{"command":"x","env":{"API_TOKEN":"${API_TOKEN:-zqdefault}"}}`,
		"a text beside a reference":        `{"command":"x","args":["--url=https://h/${PLACE}?token=zqabc&x=1"]}`,
		"JSON as an argument":              `{"command":"x","args":["{\"apiKey\":\"zqabc\"}"]}`,
		"JSON with names of its own":       `{"command":"x","args":["--config","{\"a\":[{\"braveApiKey\":\"zqabc\"}]}"]}`,
		"a login without an address":       `{"command":"x","args":["root:zqpw@tcp(127.0.0.1:3306)/db"]}`,
		"an option in camel case":          `{"command":"x","args":["--oauth2Bearer","zqword"]}`,
		"a word that is used as a secret":  `{"command":"npx","args":["mcp-remote","https://x.example","--header","Authorization: Bearer ${T}"],"env":{"T":"zqword"}}`,
		"several lines":                    `{"command":"x","env":{"PRIVATE_KEY":"-----BEGIN-----\nzq$a\"b\\\n-----END-----\n"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, `{"a":`+server+`}`, nil)
			hcl := string(r.HCL())
			for _, said := range []string{hcl, notes(r)} {
				if strings.Contains(said, "zq") {
					t.Errorf("a secret stands in\n%s", said)
				}
			}
			if strings.Count(notes(r), "is a secret here") == 0 {
				t.Errorf("no secret is listed:\n%s", notes(r))
			}
			got := load(t, r.HCL(), r).MCPServers[0]
			var want struct {
				Command      string
				Args         []string
				URL          string
				Env, Headers map[string]string
			}
			if err := json.Unmarshal([]byte(strings.NewReplacer("${API_TOKEN:-zqdefault}", "http://from-API_TOKEN", "${PLACE}", "http://filled-in-PLACE").Replace(server)), &want); err != nil {
				t.Fatal(err)
			}
			if want.Command != "" {
				want.Args = append([]string{want.Command}, want.Args...)
			}
			if diff := cmp.Diff(want.Args, got.Command); diff != "" {
				t.Errorf("command: %s", diff)
			}
			if diff := cmp.Diff(want.Env, got.Env); diff != "" {
				t.Errorf("env: %s", diff)
			}
			if diff := cmp.Diff(want.Headers, got.Headers); diff != "" {
				t.Errorf("headers: %s", diff)
			}
			if got.URL != want.URL {
				t.Errorf("url: %q, want %q", got.URL, want.URL)
			}
		})
	}
}

// A secret's value is masked wherever it stands, so that plain words must not become one.
func TestWhatIsPlainlyNoSecretStaysReadable(t *testing.T) {
	for name, server := range map[string]string{
		"variables": `{"command":"x","env":{"NODE_ENV":"production","LOG_LEVEL":"debug","PORT":"8080","ON":"true","RATIO":"0.5","WAIT":"30s",
			"DIR":"/srv/data-1234567890abcdef123","HOST":"db.example.com:5432","URL":"https://api.example.com/v1/things?limit=5","REGION":"us-east-1",
			"MODEL":"claude-3-5-sonnet-20241022","LANG":"en_US.UTF-8","PROXY_TARGET":"http://localhost:3000","MAX_TOKENS":"4096","TOKEN_FILE":"/etc/token",
			"AUTH_TYPE":"oauth","SLACK_TEAM_ID":"T01","NODE_OPTIONS":"--max-old-space-size=4096","EMPTY_KEY":"","GREETING":"good morning","PKG":"@scope/some-package@1.2.3"}}`,
		"headers": `{"url":"https://x.example/mcp","headers":{"Accept":"application/json, text/event-stream","X-Region":"eu","X-Trace":"on","User-Agent":"Mozilla/5.0 (X11)"}}`,
		"arguments": `{"command":"npx","args":["-y","-p","@scope/some-package","@modelcontextprotocol/server-sequential-thinking@2025.7.1","--local-timezone=Europe/Berlin",
			"--port","8080","ghcr.io/github/github-mcp-server:v0.4.1","git+https://github.com/a/b@0123456789abcdef0123456789abcdef01234567",
			"/home/ada/.cache/tools-87dc91983e6b/node_modules/.bin/x","--auth","oauth","--key-file=/etc/key.pem","console.log('hello'); process.exit(3)"]}`,
		"ports of docker": `{"command":"docker","args":["run","-p8081:81","-p","8080:80","-u","1000:1000","-v","/a:/b","img@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]}`,
		"addresses":       `{"url":"https://server.example.com/@someone/some-tool/mcp?profile=mine&readOnly=true"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r := read(t, `{"a":`+server+`}`, nil); len(r.Variables) > 0 {
				t.Errorf("%v became secrets:\n%s", r.Variables, notes(r))
			}
		})
	}
}

// What a server's own env gives keeps its meaning in its arguments, and a secret there stays in the environment where the
// program resolves the reference itself.
func TestAReferenceToTheServersOwnVariable(t *testing.T) {
	const env = `"env":{"AUTH":"Bearer zq-secret-9","ROOM":"blue"}`
	for name, tt := range map[string]struct {
		server string
		want   []string
	}{
		"mcp-remote":   {`{"command":"npx","args":["-y","mcp-remote@latest","https://x.example/mcp","--header","Authorization:${AUTH}"],` + env + `}`, []string{"npx", "-y", "mcp-remote@latest", "https://x.example/mcp", "--header", "Authorization:${AUTH}"}},
		"a shell":      {`{"command":"sh","args":["-c","exec srv --auth \"${AUTH}\""],` + env + `}`, []string{"sh", "-c", `exec srv --auth "${AUTH}"`}},
		"another one":  {`{"command":"srv","args":["--auth","${AUTH}","--in=${env:ROOM}"],` + env + `}`, []string{"srv", "--auth", "Bearer zq-secret-9", "--in=blue"}},
		"an ambient's": {`{"command":"srv","args":["${OTHER}"],` + env + `}`, []string{"srv", "http://filled-in-OTHER"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, `{"a":`+tt.server+`}`, nil)
			if strings.Contains(string(r.HCL()), "zq-secret") {
				t.Errorf("a secret stands in\n%s", r.HCL())
			}
			got := load(t, r.HCL(), r).MCPServers[0]
			if diff := cmp.Diff(tt.want, got.Command); diff != "" {
				t.Error(diff)
			}
			if got.Env["AUTH"] != "Bearer zq-secret-9" {
				t.Errorf("env: %v", got.Env)
			}
		})
	}
}

// No server may be given another's secret, nor what the environment has by that name for something else.
func TestSecretsOfOneNameStayApart(t *testing.T) {
	r := read(t, `{
		"one": {"command":"x","env":{"API_TOKEN":"first-1","SHARED_TOKEN":"same-1"}},
		"two": {"command":"x","env":{"API_TOKEN":"second-2","SHARED_TOKEN":"same-1","PRESENT_TOKEN":"file-3","HTTPS_PROXY":"http://u:p4@proxy"}},
		"three": {"command":"x","env":{"MINE":"${AMBIENT_TOKEN}"}},
		"four": {"command":"x","env":{"AMBIENT_TOKEN":"fourth-4"}}
	}`, &importer.Options{LookupEnv: func(name string) (string, bool) { return "what the environment has", name == "PRESENT_TOKEN" }})
	want := []importer.Variable{
		{Env: "API_TOKEN", Value: "first-1"}, {Env: "SHARED_TOKEN", Value: "same-1"}, {Env: "TWO_API_TOKEN", Value: "second-2"},
		{Env: "TWO_PRESENT_TOKEN", Value: "file-3"}, {Env: "TWO_HTTPS_PROXY", Value: "http://u:p4@proxy"},
		{Env: "AMBIENT_TOKEN"}, {Env: "FOUR_AMBIENT_TOKEN", Value: "fourth-4"},
	}
	if diff := cmp.Diff(want, r.Variables); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
