package functions_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/frontendtest"
	"github.com/hermesd/hermesd/runtime/frontend/functions"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The two calls of a request wait for each other: one after the other they would never end.
func TestCallsThatAreSafeSideBySideRunSo(t *testing.T) {
	yes := true
	meet := make(chan struct{})
	kit := providertest.New("kit", providertest.Tool{
		Definition: tool.Definition{Name: "meet", Annotations: tool.Annotations{ParallelSafe: &yes}},
		Handler: func(ctx context.Context, _ *provider.Request) (*tool.Result, error) {
			select {
			case meet <- struct{}{}:
			case <-meet:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return tool.TextResult("met"), nil
		},
	})
	w := frontendtest.New(t, kit)
	s, err := functions.New(&functions.Options{Desk: w.Desk, Gate: frontend.NewGate(w.Agents, nil)})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s.Handler())
	t.Cleanup(hs.Close)
	for name, body := range map[string]string{
		"by their own name":    `{"calls":[{"name":"meet","arguments":{}},{"name":"meet","arguments":{}}]}`,
		"one through a bridge": `{"calls":[{"name":"meet"},{"name":"tool_call","arguments":{"calls":[{"name":"meet","arguments":{}}]}}]}`,
		"beside a bad one":     `{"calls":[{"name":"meet"},{"name":""},{"name":"meet"},{"name":"tool_search","arguments":{"queries":["meet"]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp, text := do(t, http.MethodPost, hs.URL+functions.CallsPath, body, nil)
			if resp.StatusCode != http.StatusOK || strings.Count(text, `"met"`) != 2 {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
}
