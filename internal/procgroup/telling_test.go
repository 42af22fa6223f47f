package procgroup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/procgroup"
)

func TestTheLinesThatSayWhatWentWrong(t *testing.T) {
	for name, tt := range map[string]struct{ wrote, want string }{
		"nothing":                            {"", ""},
		"one line":                           {"cannot open the database", "cannot open the database"},
		"plain lines are taken from the end": {"a\nb\nc\nd\ne", "c\nd\ne"},
		"node's missing module": {`node:internal/modules/cjs/loader:1228
throw err;
^
Error: Cannot find module '/srv/x.mjs'
at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
at node:internal/main/run_main_module:28:49 {
code: 'MODULE_NOT_FOUND',
requireStack: []
}
Node.js v20.20.2`, "Error: Cannot find module '/srv/x.mjs'"},
		"node's uncaught error": {`file:///srv/x.mjs:3
throw new Error('set FOO_API_KEY');
^
Error: set FOO_API_KEY
at file:///srv/x.mjs:3:7
at ModuleJob.run (node:internal/modules/esm/module_job:271:25)
Node.js v22.1.0`, "throw new Error('set FOO_API_KEY');\nError: set FOO_API_KEY"},
		"a panic of Go": {`starting
panic: no configuration
goroutine 1 [running]:
main.main()
/srv/main.go:12 +0x1d
exit status 2`, "panic: no configuration\nexit status 2"},
		"a traceback of Python": {`Traceback (most recent call last):
File "/srv/x.py", line 4, in <module>
f()
ModuleNotFoundError: No module named 'mcp'`, "ModuleNotFoundError: No module named 'mcp'"},
		"nothing but frames": {"at a (x:1)\nat b (x:2)\n}", "at a (x:1)\nat b (x:2)\n}"},
		"an early fault and later chatter": {`could not read the token: permission denied
bye
see you`, "could not read the token: permission denied\nsee you"},
		"faults without end": {"error 1\nerror 2\nerror 3\nerror 4\nthe end", "error 3\nerror 4\nthe end"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			if tt.wrote != "" {
				lines = strings.Split(tt.wrote, "\n")
			}
			before := strings.Join(lines, "\n")
			if diff := cmp.Diff(tt.want, strings.Join(procgroup.Telling(lines, 3), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Join(lines, "\n") != before {
				t.Error("the lines themselves have changed")
			}
		})
	}
}
