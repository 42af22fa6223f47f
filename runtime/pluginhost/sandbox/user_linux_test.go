package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that everything has; no file of this test's is his.
const nobody = 65534

// TestWithoutRoot runs the tests of this package again as an ordinary user, for whom the layers are made in other ways.
func TestWithoutRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("these tests run as an ordinary user already")
	}
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, temp} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Skipf("cannot become another user: %v", err)
		}
	}
	tests, attempts := filepath.Join(dir, "tests"), filepath.Join(dir, "attempts")
	for from, to := range map[string]string{os.Args[0]: tests, attemptsBinary(t): attempts} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(tests, "-test.run=^(TestA|TestNo)", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + temp, attemptsEnv + "=" + attempts}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "layer") || strings.Contains(line, "ForkBomb") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
