package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var keptID = regexp.MustCompile(`hermesd://results/([a-z0-9]+)`)

// getAs fetches a path as an agent, in a session.
func (o *overseen) getAs(agent, session, path string) (int, string) {
	o.t.Helper()
	r, err := http.NewRequest(http.MethodGet, o.url+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("X-Hermes-Session", session)
	client := &http.Client{Transport: authorized{token(agent)}, Timeout: patience}
	response, err := client.Do(r)
	text := body(o.t, response, err)
	return response.StatusCode, text
}

func TestABigResultIsReadPieceByPiece(t *testing.T) {
	o := oversee(t, "tools {\n  max_result_chars = 1000\n}\n")
	lines := map[string]any{"command": "seq -f 'line %04g' 1 500"}

	t.Run("over HTTP", func(t *testing.T) {
		raw, err := json.Marshal(map[string]any{"name": "terminal", "arguments": lines})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, o.url+"/v1/calls", strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Hermes-Session", "reading")
		response, err := (&http.Client{Transport: authorized{token("desk")}, Timeout: patience}).Do(r)
		got := body(t, response, err)
		found := keptID.FindStringSubmatch(got)
		if found == nil || strings.Contains(got, "line 0500") {
			t.Fatalf("no preview with an id: %s", got)
		}
		var whole strings.Builder
		for offset, pages := 0, 0; ; pages++ {
			code, text := o.getAs("desk", "reading", fmt.Sprintf("/v1/results/%s?offset=%d", found[1], offset))
			var page struct {
				Text string
				Next int
			}
			if err := json.Unmarshal([]byte(text), &page); err != nil || code != http.StatusOK || pages > 100 {
				t.Fatalf("%d %s", code, text)
			}
			whole.WriteString(page.Text)
			if offset = page.Next; offset == 0 {
				break
			}
		}
		if !strings.Contains(whole.String(), "line 0001\n") || !strings.Contains(whole.String(), "line 0500\n") {
			t.Errorf("it is not whole: %d characters", whole.Len())
		}
		for who, session := range map[string]string{"desk": "another", "narrow": "reading"} {
			if code, text := o.getAs(who, session, "/v1/results/"+found[1]); code != http.StatusNotFound {
				t.Errorf("%s in session %s reads it: %d %s", who, session, code, text)
			}
		}
		if code, _ := o.getAs("desk", "reading", "/v1/results/"+found[1]+"?offset=x"); code != http.StatusBadRequest {
			t.Errorf("an offset that is no number: %d", code)
		}
	})

	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("over MCP "+version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			client := sdk.NewClient(&sdk.Implementation{Name: "reader", Version: "1"}, nil)
			transport := &sdk.StreamableClientTransport{Endpoint: o.url + "/mcp", HTTPClient: &http.Client{Transport: authorized{token("desk")}}}
			s, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "terminal", Arguments: lines})
			if err != nil {
				t.Fatal(err)
			}
			var uri string
			for _, c := range result.Content {
				if link, ok := c.(*sdk.ResourceLink); ok {
					uri = link.URI
				}
			}
			id, ok := strings.CutPrefix(uri, "hermesd://results/")
			if !ok {
				t.Fatalf("no link: %+v", result.Content)
			}
			whole, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
			if err != nil || len(whole.Contents) != 1 || !strings.Contains(whole.Contents[0].Text, "line 0500\n") {
				t.Errorf("the resource: %+v, %v", whole, err)
			}
			if got, isError := call(t, s, "result_read", map[string]any{"id": id, "offset": 4900}); isError || !strings.Contains(got, "line 0500") {
				t.Errorf("result_read: %s", got)
			}
			if _, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "hermesd://results/nosuch"}); err == nil {
				t.Error("a result that is not kept is read")
			}
			// Whoever has any tool can read on.
			if got := overMCP(version)(o, &attempt{"narrow", "result_read", map[string]any{"id": id}}); !strings.Contains(got, "not_available") {
				t.Errorf("another agent: %s", got)
			}
		})
	}
}
