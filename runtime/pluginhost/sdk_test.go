package pluginhost_test

import (
	"testing"

	"github.com/hermesd/hermesd/internal/testbin"
)

func TestAPluginMadeWithTheSDKRuns(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Path, o.Prefix, o.MTLS = testbin.Build(t, "examples/plugins/hello"), "greeter", nil
	h := start(t, o)
	h.ready()
	req := h.request("greet", `{"name":"Ada","language":"de"}`)
	if req.Definition.Name != "greeter__greet" {
		t.Errorf("name %q", req.Definition.Name)
	}
	result, err := h.Invoke(t.Context(), req)
	if err != nil || string(result.Structured) != `{"greeting":"Hallo, Ada!"}` {
		t.Errorf("got %s, %v", result.Structured, err)
	}
}
