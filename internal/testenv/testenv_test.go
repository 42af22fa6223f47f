package testenv_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/testenv"
)

// TestData runs itself with each environment, since a skipped or failed test cannot be looked at from inside.
func TestData(t *testing.T) {
	const inner = "TESTENV_INNER"
	if os.Getenv(inner) != "" {
		t.Log("the folder is " + testenv.Data(t))
		return
	}
	for name, tt := range map[string]struct{ data, require, want string }{
		"it is there":                    {"/data", "npm,data", "the folder is /data"},
		"it is not there":                {"", "", "--- SKIP"},
		"something else is required":     {"", "npm", "--- SKIP"},
		"it is required but not there":   {"", "npm,data", "--- FAIL"},
		"it is required alone, no comma": {"", "data", "HERMESD_REQUIRE requires data"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestData$", "-test.v")
			cmd.Env = append(os.Environ(), inner+"=1", "HERMESD_EVAL_DATA="+tt.data, testenv.RequireEnv+"="+tt.require)
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), tt.want) {
				t.Errorf("%v, and it says\n%s", err, out)
			}
		})
	}
}
