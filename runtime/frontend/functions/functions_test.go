package functions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/functions"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func tools() provider.Provider {
	echo := providertest.Echo("echo")
	echo.Coldness = tool.Core
	echo.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	return providertest.New("kit", echo,
		providertest.Tool{
			Definition: tool.Definition{Name: "draw", Description: "Draw."},
			Handler: func(context.Context, *provider.Request) (*tool.Result, error) {
				return &tool.Result{Content: []tool.Content{tool.Text("a dot"), tool.Image("image/png", []byte{1, 2, 3}), tool.Audio("audio/wav", []byte{4})}}, nil
			},
		},
		providertest.Failing("fail", tool.Errorf(tool.ToolFailed, "the disk is full; free some space")),
	)
}

func serve(t testing.TB) (*httptest.Server, *frontendtest.World) {
	t.Helper()
	w := frontendtest.New(t, tools())
	s, err := functions.New(&functions.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, &frontend.GateOptions{MaxBody: 64 << 10})})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s.Handler())
	t.Cleanup(hs.Close)
	return hs, w
}

func do(t *testing.T, method, url, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+frontendtest.Token)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(raw)
}

// Each file of testdata is what a model emitted, and what belongs into the next request: request.json, the query in the
// comment's first line, and response.json.
func TestCalls(t *testing.T) {
	hs, _ := serve(t)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(raw)
			query, _, _ := strings.Cut(string(a.Comment), "\n")
			resp, got := do(t, http.MethodPost, hs.URL+functions.CallsPath+strings.TrimSpace(query), string(a.Files[0].Data), nil)
			if resp.StatusCode != 200 {
				t.Errorf("HTTP %d", resp.StatusCode)
			}
			if diff := cmp.Diff(compact(t, a.Files[1].Data), compact(t, []byte(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestToolsInEachFormat(t *testing.T) {
	hs, w := serve(t)
	tests := map[string]string{
		"openai":           `{"type":"function","function":{"name":"echo","description":"Echo the arguments.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}}`,
		"openai-responses": `{"type":"function","name":"echo","description":"Echo the arguments.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}},"strict":false}`,
		"anthropic":        `{"name":"echo","description":"Echo the arguments.","input_schema":{"type":"object","properties":{"n":{"type":"integer"}}}}`,
		"gemini":           `{"name":"echo","description":"Echo the arguments.","parametersJsonSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`,
		"mcp":              `{"name":"echo","description":"Echo the arguments.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"annotations":{"readOnlyHint":true,"idempotentHint":true},"_meta":{"anthropic/alwaysLoad":true}}`,
	}
	for format, want := range tests {
		t.Run(format, func(t *testing.T) {
			resp, body := do(t, http.MethodGet, hs.URL+functions.ToolsPath+"?format="+format, "", nil)
			var got struct{ Tools []json.RawMessage }
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			list := got.Tools
			if format == "gemini" {
				var wrapped struct{ FunctionDeclarations []json.RawMessage }
				if err := json.Unmarshal(list[0], &wrapped); err != nil {
					t.Fatal(err)
				}
				list = wrapped.FunctionDeclarations
			}
			if len(list) != 4 {
				t.Errorf("%d tools: %s", len(list), body)
			}
			if diff := cmp.Diff(compact(t, []byte(want)), compact(t, list[0])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			tag := resp.Header.Get("ETag")
			if resp, _ := do(t, http.MethodGet, hs.URL+functions.ToolsPath+"?format="+format, "", map[string]string{"If-None-Match": tag}); resp.StatusCode != 304 {
				t.Errorf("unchanged: HTTP %d", resp.StatusCode)
			}
		})
	}
	t.Run("the tag changes with the tools", func(t *testing.T) {
		before, _ := do(t, http.MethodGet, hs.URL+functions.ToolsPath, "", nil)
		more := providertest.Echo("more")
		w.Catalog.SetProviders([]provider.Provider{tools(), providertest.New("other", more)})
		after, _ := do(t, http.MethodGet, hs.URL+functions.ToolsPath, "", nil)
		if before.Header.Get("ETag") == after.Header.Get("ETag") {
			t.Error("it did not")
		}
	})
}

func TestErrors(t *testing.T) {
	hs, _ := serve(t)
	tests := map[string]struct {
		method, path, body string
		header             map[string]string
		status             int
		code               string
	}{
		"no JSON":                  {"POST", "/v1/calls", `{"tool_calls":[`, nil, 400, "bad_request"},
		"bytes that are no text":   {"POST", "/v1/calls", `{"name":"echo","arguments":{"x":"` + "a\xff" + `"}}`, nil, 400, "bad_request"},
		"no calls":                 {"POST", "/v1/calls", `{"role":"assistant","content":"hello"}`, nil, 400, "bad_request"},
		"another format":           {"POST", "/v1/calls?format=gemini", `{"name":"echo"}`, nil, 400, "bad_request"},
		"an unknown format":        {"GET", "/v1/tools?format=cohere", "", nil, 400, "bad_request"},
		"too many calls":           {"POST", "/v1/calls", `{"calls":[` + strings.Repeat(`{"name":"echo"},`, 64) + `{"name":"echo"}]}`, nil, 400, "bad_request"},
		"a body that is too big":   {"POST", "/v1/calls", `{"name":"echo","arguments":{"x":"` + strings.Repeat("x", 64<<10) + `"}}`, nil, 413, "bad_request"},
		"a wrong token":            {"GET", "/v1/tools", "", map[string]string{"Authorization": "Bearer x"}, 401, "unauthenticated"},
		"a foreign page":           {"GET", "/v1/tools", "", map[string]string{"Origin": "http://evil.example"}, 403, "unauthenticated"},
		"a wrong method":           {"PUT", "/v1/tools", "", nil, 405, "bad_request"},
		"a path that is not there": {"GET", "/v1/toolz", "", nil, 404, "bad_request"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resp, body := do(t, tt.method, hs.URL+tt.path, tt.body, tt.header)
			var got struct{ Error, Code string }
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			if resp.StatusCode != tt.status || got.Code != tt.code || got.Error == "" {
				t.Errorf("HTTP %d %+v", resp.StatusCode, got)
			}
		})
	}
}

func TestErrorsSpeakOfJSONAndNotOfThisProgram(t *testing.T) {
	hs, _ := serve(t)
	for body, want := range map[string]string{
		`5`:                       "the body must be an object or a list of objects; there is a JSON number in its place",
		`[5]`:                     "the body must be an object or a list of objects; there is a JSON number in its place",
		`{"tool_calls":{}}`:       "the body is of no known shape: tool_calls cannot be a JSON object",
		`{"name":5}`:              "the body is of no known shape: name cannot be a JSON number",
		`{"functionCall":"echo"}`: "the body is of no known shape: functionCall cannot be a JSON string",
		`{"name":"echo"`:          "the body is not JSON: unexpected end of JSON input",
	} {
		_, answer := do(t, http.MethodPost, hs.URL+functions.CallsPath, body, nil)
		var got struct{ Error string }
		if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Error != want {
			t.Errorf("%s: %s, want %q", body, answer, want)
		}
	}
}

func TestWhatAnErrorRepeatsIsNotCutInACharacter(t *testing.T) {
	hs, _ := serve(t)
	for i := range 4 { // one of them meets the limit inside a character
		long := strings.Repeat("x", i) + strings.Repeat("\U0001F600", 100)
		for _, request := range [][3]string{
			{http.MethodPost, functions.CallsPath, `{"calls":[{"name":"` + long + `","arguments":5}]}`},
			{http.MethodGet, functions.ToolsPath + "?format=" + url.QueryEscape(long), ""},
		} {
			_, answer := do(t, request[0], hs.URL+request[1], request[2], nil)
			if !strings.Contains(answer, "\U0001F600") || strings.ContainsRune(answer, '\uFFFD') || strings.Contains(answer, `\x`) || strings.Contains(answer, `\ufffd`) {
				t.Errorf("%s %s: %s", request[0], request[1], answer)
			}
		}
	}
}

func TestHealthNeedsNoToken(t *testing.T) {
	hs, _ := serve(t)
	resp, body := do(t, http.MethodGet, hs.URL+functions.HealthPath, "", map[string]string{"Authorization": ""})
	if resp.StatusCode != 200 || strings.TrimSpace(body) != `{"status":"ok"}` {
		t.Errorf("HTTP %d %s", resp.StatusCode, body)
	}
}
