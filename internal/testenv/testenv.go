// Package testenv is what the environment says about a run of the tests: what it must find, and whether it has the machine
// to itself.
package testenv

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// RequireEnv lists, with commas, what tests must not be skipped for want of: "npm" (programs from npm), "data" (the
// evaluation data).
const RequireEnv = "HERMESD_REQUIRE"

// Missing skips a test for want of something, or fails it where that is required.
func Missing(t testing.TB, what, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv(RequireEnv), ","), what) {
		t.Fatalf("%s (%s requires %s)", reason, RequireEnv, what)
	}
	t.Skip(reason)
}

// Data is the folder of the evaluation data. The test is skipped, or fails, without it.
func Data(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("HERMESD_EVAL_DATA")
	if dir == "" {
		Missing(t, "data", "HERMESD_EVAL_DATA names no folder with real catalogs")
	}
	return dir
}

// Quiet reports whether the run has the machine to itself, as `make soak` and `make bars` say. Only then do bars in time
// hold: tests beside each other, on two cores and under the race detector, take each other's time.
func Quiet() bool { return os.Getenv("HERMESD_SOAK") != "" || os.Getenv("HERMESD_QUIET") != "" }
