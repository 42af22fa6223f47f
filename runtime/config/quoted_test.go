package config_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/config"
)

func TestFindingsQuoteNoSecretOfAFileThatCannotBeRead(t *testing.T) {
	const server = "mcp_server \"a\" {\n  url = \"https://example.com\"\n  "
	for name, tt := range map[string]struct{ file, src string }{
		"misspelt key":                {"config.hcl", server + "oauth {\n    client_secrett = \"hunter22\"\n  }\n}\n"},
		"misspelt key, bare word":     {"config.hcl", server + "oauth {\n    client_secrett = hunter22\n  }\n}\n"},
		"secret key, bare word":       {"config.hcl", server + "oauth {\n    client_secret = hunter22\n  }\n}\n"},
		"key of another block":        {"config.hcl", "agent \"x\" {\n  token = \"hunter22\"\n}\n"},
		"fault beside it":             {"config.hcl", server + "headers = { Authorization = \"Bearer hunter22\"\n bad }\n}\n"},
		"fault on the same line":      {"config.hcl", server + "headers = { Authorization = \"Bearer hunter22\" bad }\n}\n"},
		"fault after a variable":      {"config.hcl", server + "env = { GITHUB_TOKEN = \"hunter22\"\n oops }\n}\n"},
		"a list":                      {"config.hcl", server + "env = { FOO_TOKEN = [\"hunter22\"] }\n}\n"},
		"a list over lines":           {"config.hcl", server + "env = { FOO_TOKEN = [\n \"hunter22\" bad\n] }\n}\n"},
		"unterminated":                {"config.hcl", server + "oauth {\n    client_secret = \"hunter22\n  }\n}\n"},
		"beside a template":           {"config.hcl", server + "headers = { Authorization = \"Bearer ${secret(\"env:T\")}hunter22\" bad }\n}\n"},
		"without its sign":            {"config.hcl", server + "oauth {\n    client_secret \"hunter22\"\n  }\n}\n"},
		"password in an address":      {"config.hcl", "mcp_server \"a\" {\n  url = \"http://bob:hunter22@example.com\" bad\n}\n"},
		"token in an address":         {"config.hcl", "mcp_server \"a\" {\n  url = \"http://example.com/?access_token=hunter22\" bad\n}\n"},
		"heredoc":                     {"config.hcl", server + "oauth {\n    client_secrett = <<E\nhunter22\nE\n  }\n}\n"},
		"JSON with one comma more":    {"config.hcl.json", "{\"mcp_server\": {\"a\": {\"oauth\": {\"client_secret\": \"hunter22\",}}}}"},
		"JSON, value on its own line": {"config.hcl.json", "{\"mcp_server\": {\"a\": {\"oauth\": {\"client_secret\":\n\"hunter22\" x}}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := config.Parse(tt.file, []byte(tt.src), fakeEnv(nil))
			var b bytes.Buffer
			if _, err := diags.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			raw, err := diags.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if !diags.HasErrors() || strings.Contains(b.String()+string(raw), "hunter22") || strings.Contains(b.String(), "\x00") {
				t.Errorf("%s\n%s", b.String(), raw)
			}
		})
	}
}
