package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/cmd/hermesd/importer"
)

// One entry that cannot work is written switched off, with its reason, and the others as ever.
func TestAnEntryThatCannotWorkIsSwitchedOff(t *testing.T) {
	for name, tt := range map[string]struct{ server, reason string }{
		"a socket":               {`{"url":"unix:///tmp/x.sock"}`, "must be a URL that begins with https:// or http://"},
		"a websocket":            {`{"url":"ws://localhost/x"}`, "must be a URL that begins with https:// or http://"},
		"an empty command":       {`{"command":" "}`, "must name a program"},
		"an empty list":          {`{"command":[]}`, "needs command or url"},
		"a header with a blank":  {`{"url":"https://x.example","headers":{"X A":"b"}}`, "is no header name"},
		"a header of two lines":  {`{"url":"https://x.example","headers":{"X-Token":"b\nc"}}`, "line break"},
		"a variable with no URL": {`{"url":"${env:MYURL}/mcp"}`, "must be a URL that begins with https:// or http://"},
		"command and url":        {`{"command":"x","url":"https://x.example"}`, "exactly one of command or url"},
		"neither":                {`{"note":"hi"}`, "needs command or url"},
		"headers of a process":   {`{"command":"x","headers":{"A":"b"}}`, "headers has a meaning only beside url"},
		"env of a url":           {`{"url":"https://x.example","env":{"A":"b"}}`, "env has a meaning only beside command"},
		"an unknown transport":   {`{"type":"pigeon","url":"https://x.example"}`, `transport "pigeon" is unknown`},
		"arguments of no kind":   {`{"command":"x","args":[{"a":1}]}`, "it is no list of texts"},
		"a switch of no kind":    {`{"command":"x","disabled":"perhaps"}`, "neither true nor false"},
		"a folder nobody knows":  {`{"command":"node","args":["server.mjs"]}`, "it is not known what relative paths such as server.mjs start at"},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, `{"good":{"command":"x"},"bad":`+tt.server+`}`, &importer.Options{LookupEnv: func(name string) (string, bool) {
				return "no-url", name == "MYURL"
			}})
			servers := load(t, r.HCL(), r).MCPServers
			if len(servers) != 2 || !servers[0].Enabled || servers[1].Enabled {
				t.Fatalf("not one on and one off:\n%s", r.HCL())
			}
			for what, text := range map[string]string{"a comment": string(r.HCL()), "the list": notes(r)} {
				if !strings.Contains(text, tt.reason) {
					t.Errorf("%s does not give the reason %q:\n%s", what, tt.reason, text)
				}
			}
		})
	}
}

func TestHarmlessFormsAreNormalised(t *testing.T) {
	r := read(t, `{
		"a": {"url":"  HTTPS://X.example/Mcp \n"},
		"b": {"command":" npx ","args":["srv"]},
		"c": {"url":"http://localhost:${env:PORT}/mcp"},
		"d": {"type":"stdio","command":"x","url":"https://x.example"},
		"e": {"command":"first"}, "e": {"command":"second"}
	}`, nil)
	servers := load(t, []byte(strings.ReplaceAll(string(r.HCL()), `env("PORT")`, `"1"`)), r).MCPServers
	got := map[string]string{}
	for i := range servers {
		got[servers[i].Name] = servers[i].URL + strings.Join(servers[i].Command, " ")
		if !servers[i].Enabled {
			t.Errorf("%s is off:\n%s", servers[i].Name, r.HCL())
		}
	}
	want := map[string]string{"a": "https://X.example/Mcp", "b": "npx srv", "c": "http://localhost:1/mcp", "d": "x", "e": "second"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFileThatCannotBeReadIsNamedWithThePlace(t *testing.T) {
	for name, tt := range map[string]struct{ path, data, want string }{
		"JSON that ends":      {"/m.json", "{\n \"mcpServers\": {\"a\":\n", "/m.json: line 3, column 1: "},
		"JSON that is wrong":  {"/m.json", "{\n \"mcpServers\": nil}", "/m.json: line 2, column 16: "},
		"JSON without an end": {"/m.json", strings.Repeat("[", 1000), "levels"},
		"YAML that is wrong":  {"/m.yaml", "mcp_servers:\n  a: [\n", "/m.yaml: it is not YAML: yaml: line 2: "},
		"a wrong merge":       {"/m.yaml", "mcp_servers:\n  a:\n    <<: 1\n", "/m.yaml: line 3: << takes an object"},
		"nothing to import":   {"/m.json", `{"mcpServers":{"a":"b"}}`, "/m.json: a: left out: it is no object but a text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importer.Read([]importer.File{{Path: tt.path, Data: []byte(tt.data)}}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestYAMLMergesAreHonoured(t *testing.T) {
	const file = `
x-base: &base {command: srv, timeout: 5, env: {K: v}}
x-more: &more {args: [more], timeout: 6}
mcp_servers:
  one: {<<: *base, timeout: 7}
  two: {args: [own], <<: [*more, *base]}
  three: {command: srv, connect_timeout: 0.5, timeout: 1.5}
`
	r, err := importer.Read([]importer.File{{Path: "/m.yaml", Data: []byte(file)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range load(t, r.HCL(), r).MCPServers {
		got = append(got, strings.Join(s.Command, " ")+" "+s.Timeout.String()+" "+s.ConnectTimeout.String()+" "+s.Env["K"])
	}
	if diff := cmp.Diff([]string{"srv 7s 15s v", "srv own 6s 15s v", "srv 1.5s 500ms "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUTF16IsRead(t *testing.T) {
	data := []byte{0xff, 0xfe}
	for _, c := range []byte(`{"mcpServers":{"a":{"command":"x"}}}`) {
		data = append(data, c, 0)
	}
	if r, err := importer.Read([]importer.File{{Path: "/m.json", Data: data}}, nil); err != nil || len(r.Servers) != 1 {
		t.Error(r, err)
	}
}

func TestAServerThatWritesBesideItsProgramIsNoted(t *testing.T) {
	r := read(t, `{
		"installed": {"command":"/opt/npm/bin/mcp-server-memory"},
		"told": {"command":"/opt/npm/bin/mcp-server-memory","env":{"MEMORY_FILE_PATH":"/srv/memory.json"}},
		"fetched": {"command":"npx","args":["-y","@modelcontextprotocol/server-memory"]}
	}`, nil)
	if got := notes(r); strings.Count(got, "MEMORY_FILE_PATH") != 1 || !strings.Contains(got, "installed: env: it writes beside its own program") {
		t.Error(got)
	}
}

func TestWhatIsTooMuchIsLeftOut(t *testing.T) {
	r := read(t, `{"good":{"command":"x"},"long":{"command":"x","args":["`+strings.Repeat("a", 1<<17)+`"]},"many":{"command":"x","args":["`+strings.Repeat(`a","`, 2000)+`"]}}`, nil)
	if got := notes(r); len(r.Servers) != 1 || strings.Count(got, "left out: ") != 2 {
		t.Error(len(r.Servers), got)
	}
	numbers := strings.Repeat(`,1`, 1001)
	r = read(t, `{"good":{"command":"x"},"many":{"command":"x","args":[`+numbers[1:]+`]}}`, nil)
	if got := notes(r); len(r.Servers) != 1 || strings.Count(got, "left out: ") != 1 {
		t.Error(len(r.Servers), got)
	}
	var many strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&many, `,"s%d":{"command":"x","env":{"TOKEN":"value-%d"}}`, i, i)
	}
	for name, servers := range map[string]string{"servers": strings.ReplaceAll(many.String(), "TOKEN", "LEVEL"), "secrets": many.String()[:strings.LastIndex(many.String(), `,"s`)] + `,"s":{"command":"x","env":{"A_TOKEN":"b","B_TOKEN":"c"}}`} {
		if _, err := importer.Read([]importer.File{{Path: "/m.json", Data: []byte(`{"mcpServers":{` + servers[1:] + `}}`)}}, nil); err == nil {
			t.Errorf("too many %s were read", name)
		}
	}
}

// Files of the largest size that are made to be slow are done within seconds, not hours.
func TestWhatIsMadeToBeSlowIsNot(t *testing.T) {
	var secrets strings.Builder
	for i := range 290 {
		secrets.WriteString(`"x`)
		for j := range 700 {
			fmt.Fprintf(&secrets, " -p aB3dE5gH7%07d", i*700+j)
		}
		secrets.WriteString(`",`)
	}
	server := `{"mcpServers":{"a":{"command":"x","args":[` + secrets.String() + `"z"]}}}`
	if _, err := importer.Read([]importer.File{{Path: "/m.json", Data: []byte(server)}}, nil); err == nil || !strings.Contains(err.Error(), "environment variables") {
		t.Error(err)
	}
	r := read(t, `{"nested":{"command":"x","args":["https://a/`+strings.Repeat("?x=https://inner/", 900)+`"]}}`, nil)
	if hcl := string(r.HCL()); strings.Contains(hcl, "inner") { // too deep to be judged: taken for a secret
		t.Error(hcl)
	}
}

func TestASecretInANamesPlaceIsNotPrinted(t *testing.T) {
	r := read(t, `{"a":{"command":"x","env":{"TOKEN=hunter2secret":""}}}`, nil)
	if got := notes(r); !strings.Contains(got, "env.TOKEN: left out") || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
