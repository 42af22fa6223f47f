package integration

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// freeAddress is one that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// reason is why a provider cannot be had.
func (d *running) reason(provider string) string {
	d.t.Helper()
	for _, p := range d.providers() {
		if p.Name == provider {
			return p.Reason
		}
	}
	return ""
}

const hello = "tools {\n  tool_search = false\n}\nplugin \"hello\" {\n  path = %q\n}\n"

func TestADaemonIsNoServerOfItsOwn(t *testing.T) {
	address, socket := freeAddress(t), filepath.Join(t.TempDir(), "admin.sock")
	d := start(t, fmt.Sprintf("listen {\n  http  = %q\n  admin = %q\n}\n"+hello, address, socket, plugin("hello"))+
		fmt.Sprintf("mcp_server \"me\" {\n  url = \"http://%s/mcp\"\n}\nmcp_server \"too\" {\n  command = [%q, \"mcp\", \"--socket\", %q]\n}\n",
			address, filepath.Join(bin, "hermesd"), socket))
	ready(t, d, "greet")
	eventually(t, "the server says why it is none", func() bool { return strings.Contains(d.reason("me"), "is this daemon itself") })
	eventually(t, "over stdio, too", func() bool { return d.reason("too") != "" })
	if list := string(d.raw("tools/list", "{}")); strings.Contains(list, "__") {
		t.Errorf("it offers its own tools again: %s", list)
	}
}

func TestACircleOfTwoDaemonsEnds(t *testing.T) {
	for name, block := range map[string]string{
		"over HTTP":  `url = "http://%[3]s/mcp"`,
		"over stdio": `command = [%[4]q, "mcp", "-c", %[5]q]`,
	} {
		t.Run(name, func(t *testing.T) {
			address := freeAddress(t)
			a := start(t, fmt.Sprintf("listen {\n  http = %q\n}\n"+hello, address, plugin("hello")))
			ready(t, a, "greet")
			b := start(t, fmt.Sprintf("mcp_server \"a\" {\n  url = \"%s/mcp\"\n}\n"+hello, a.url, plugin("hello")))
			ready(t, b, "greet", "mcp__a__greet")
			// a is started anew with b as a server, and b joins it again.
			a.stop()
			next := start(t, fmt.Sprintf("listen {\n  http = %q\n}\n"+hello+"mcp_server \"b\" {\n  "+block+"\n}\n",
				address, plugin("hello"), strings.TrimPrefix(b.url, "http://"), filepath.Join(bin, "hermesd"), b.config))
			ready(t, next, "greet", "mcp__b__greet")
			if text, isError := call(t, b.connect(nil), "mcp__a__greet", map[string]any{"name": "Ada"}); !isError {
				t.Errorf("it went round: %s", text)
			}
			eventually(t, "one of the two says why it takes nothing from the other", func() bool {
				return strings.Contains(next.reason("b")+b.reason("a"), "circle")
			})
			for _, d := range []*running{next, b} {
				if list := string(d.raw("tools/list", "{}")); strings.Contains(list, "mcp__a__mcp__b__mcp__a") || strings.Contains(list, "mcp__b__mcp__a__mcp__b") {
					t.Errorf("tools go round: %s", list)
				}
			}
		})
	}
}
