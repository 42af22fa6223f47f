package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	allCaps = `{"elicitation":{"form":{}},"sampling":{},"roots":{}}`
	noCaps  = `{}`
)

// answering is a tool that does as it is told.
func answering(name string, h providertest.Handler) providertest.Tool {
	t := core(providertest.Echo(name))
	t.Handler = h
	return t
}

func returning(name string, r *tool.Result) providertest.Tool {
	return answering(name, func(context.Context, *provider.Request) (*tool.Result, error) { return r, nil })
}

// everyAnswer are tools that answer in every way there is.
func everyAnswer() []providertest.Tool {
	asking := core(providertest.Asking("t_ask", provider.Question{Message: "sure?", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`)}))
	return []providertest.Tool{
		core(providertest.Echo("t_echo")),
		core(providertest.Failing("t_fail", tool.Errorf(tool.DownstreamFailed, "it <broke> & \u00e9"))),
		returning("t_error", &tool.Result{Content: []tool.Content{tool.Text("no")}, IsError: true}),
		returning("t_structured", &tool.Result{Content: []tool.Content{tool.Text("7")}, Structured: json.RawMessage(`{"n":12345678901234567890}`)}),
		returning("t_image", &tool.Result{Content: []tool.Content{tool.Image("image/png", []byte{1, 2, 3}), tool.Content("{\n\"type\":\"novelty\"}")}}),
		returning("t_meta", &tool.Result{Content: []tool.Content{}, Meta: json.RawMessage(`{"own/key":{"a":[1]}}`)}),
		returning("t_garbage", &tool.Result{Content: []tool.Content{tool.Content(`{"type":`)}}),
		returning("t_needy", &tool.Result{Content: []tool.Content{tool.Text(`{"required_capabilities":{"sampling":{}}}`)}, IsError: true}),
		answering("t_needs", func(context.Context, *provider.Request) (*tool.Result, error) {
			return nil, tool.Errorf(tool.Unsupported, "it needs more").With("required_capabilities", json.RawMessage(`{"sampling":{}}`))
		}),
		answering("t_tells", func(_ context.Context, req *provider.Request) (*tool.Result, error) {
			req.Host.Progress(tool.Progress{Done: 1, Total: 2, Note: "half"})
			for _, level := range []string{"debug", "info", "error"} {
				req.Host.Log(tool.LogRecord{Level: level, Logger: "l", Data: json.RawMessage(`"` + level + `"`)})
			}
			return tool.TextResult("told"), nil
		}),
		asking,
	}
}

// A plain call is served without the SDK. With a parameter behind its Content-Type it is served by the SDK, and the client
// cannot tell the difference.
func TestAPlainCallIsAnsweredAsTheSDKAnswersIt(t *testing.T) {
	e := serve(t, providertest.New("t", everyAnswer()...))
	cases := map[string]struct{ name, caps, meta string }{
		"text":                         {"t_echo", noCaps, ""},
		"text, to a client with forms": {"t_echo", allCaps, ""},
		"a failure":                    {"t_fail", noCaps, ""},
		"a tool's error":               {"t_error", noCaps, ""},
		"structured":                   {"t_structured", noCaps, ""},
		"an image":                     {"t_image", noCaps, ""},
		"_meta of the tool":            {"t_meta", noCaps, ""},
		"a result that is no JSON":     {"t_garbage", noCaps, ""},
		"an unknown tool":              {"t_none", noCaps, ""},
		"a missing capability":         {"t_needs", noCaps, ""},
		"what looks like one":          {"t_needy", noCaps, ""},
		"progress and log lines":       {"t_tells", noCaps, `,"progressToken":"p","io.modelcontextprotocol/logLevel":"info"`},
		"progress only":                {"t_tells", noCaps, `,"progressToken":7`},
		"nothing on the way":           {"t_tells", allCaps, ""},
		"a question":                   {"t_ask", allCaps, ""},
		"a question to nobody":         {"t_ask", noCaps, ""},
		"a search":                     {"tool_search", noCaps, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}%s},"name":%q,"arguments":{"queries":["echo"]}}}`, newer, c.caps, c.meta, c.name)
			answer := func(contentType string) (status int, messages []any) {
				resp := e.post(t, body, map[string]string{"Content-Type": contentType, "Mcp-Protocol-Version": newer, "Mcp-Method": "tools/call", "Mcp-Name": c.name})
				for _, raw := range readMessages(t, resp) {
					var m map[string]any
					if err := json.Unmarshal(raw, &m); err != nil {
						t.Fatalf("%v: %s", err, raw)
					}
					if result, ok := m["result"].(map[string]any); ok && result["requestState"] != nil {
						result["requestState"] = "some"
						if content, there := result["content"]; there {
							t.Errorf("a question has the content %v", content)
						}
					}
					messages = append(messages, m)
				}
				return resp.StatusCode, messages
			}
			status, got := answer("application/json")
			wantStatus, want := answer("application/json; charset=utf-8")
			if status != wantStatus {
				t.Errorf("HTTP %d, want %d", status, wantStatus)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("SDK - ours +:\n%s", diff)
			}
		})
	}
}

func TestAnIDComesBackAsItWent(t *testing.T) {
	e := serve(t, providertest.New("t", core(providertest.Echo("t_echo"))))
	for _, id := range []string{`1`, `0`, `-3`, `9007199254740993`, `18446744073709551616`, `""`, `"a\u0041\n"`, `"ü"`} {
		resp := e.post(t, plainCall(id, "t_echo", ""), plainHeader("t_echo"))
		var m struct{ ID, Result json.RawMessage }
		if messages := readMessages(t, resp); json.Unmarshal(messages[0], &m) != nil || m.Result == nil || string(m.ID) != id {
			t.Errorf("id %s: %s", id, messages)
		}
	}
}

func plainHeader(name string) map[string]string {
	return map[string]string{"Mcp-Protocol-Version": newer, "Mcp-Method": "tools/call", "Mcp-Name": name}
}

func plainCall(id, name, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}},"name":%q%s}}`, id, newer, name, more)
}

// What is not quite a plain call is not taken for one.
func TestAnUnusualCallIsJudgedByTheProtocolsRules(t *testing.T) {
	e := serve(t, providertest.New("t", core(providertest.Echo("t_echo"))))
	plain := plainCall("1", "t_echo", `,"arguments":{}`)
	cases := map[string]struct {
		body   string
		header map[string]string
		want   int
	}{
		"plain":                        {plain, nil, 200},
		"another name in the header":   {plain, map[string]string{"Mcp-Name": "t_other"}, 400},
		"no name in the header":        {plain, map[string]string{"Mcp-Name": ""}, 400},
		"another method in the header": {plain, map[string]string{"Mcp-Method": "tools/list"}, 400},
		"another version in the body":  {strings.Replace(plain, newer, "2099-01-01", 1), nil, 400},
		"no capabilities":              {strings.Replace(plain, "clientCapabilities", "clientCapacities", 1), nil, 400},
		"capabilities that are text":   {strings.Replace(plain, `Capabilities":{}`, `Capabilities":"all"`, 1), nil, 400},
		"no _meta":                     {strings.Replace(plain, `"_meta"`, `"_mota"`, 1), nil, 400},
		"no JSON":                      {plain[:len(plain)-1], nil, 400},
		"nothing":                      {"", nil, 400},
		"an id that is an object":      {strings.Replace(plain, `"id":1`, `"id":{}`, 1), nil, 400},
		"an id of null":                {strings.Replace(plain, `"id":1`, `"id":null`, 1), nil, 400},
		"JSON-RPC 1.0":                 {strings.Replace(plain, `"2.0"`, `"1.0"`, 1), nil, 400},
		"another method":               {strings.Replace(plain, "tools/call", "tools/walk", 1), nil, 404},
		"a client that takes no JSON":  {plain, map[string]string{"Accept": "text/event-stream"}, 400},
		"a form":                       {plain, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
	}
	for name, c := range cases {
		header := plainHeader("t_echo")
		for k, v := range c.header {
			header[k] = v
		}
		if resp := e.post(t, c.body, header); resp.StatusCode != c.want {
			t.Errorf("%s: HTTP %d, want %d: %s", name, resp.StatusCode, c.want, readMessages(t, resp))
		}
	}
}

// An answer that tells nothing on its way is one document with its length: proxies and clients like it best.
func TestAQuietCallIsOneDocument(t *testing.T) {
	e := serve(t, providertest.New("t", core(providertest.Echo("t_echo"))))
	resp := e.post(t, plainCall("1", "t_echo", ""), plainHeader("t_echo"))
	if resp.Header.Get("Content-Type") != "application/json" || resp.ContentLength <= 0 || resp.StatusCode != http.StatusOK {
		t.Errorf("HTTP %d, %d bytes, %v", resp.StatusCode, resp.ContentLength, resp.Header)
	}
}
