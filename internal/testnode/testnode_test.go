package testnode

import (
	"os/exec"
	"strings"
	"testing"
)

func TestNodeIsTheVersionThatTheProgramsNeed(t *testing.T) {
	out, err := exec.Command(Node(t), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out), "v22.") {
		t.Errorf("node is %s, want 22", out)
	}
}

func TestWhatIsNoNetwork(t *testing.T) {
	for out, want := range map[string]bool{
		"npm error code ENOTFOUND":  true,
		"npm error code EAI_AGAIN":  true,
		"npm error code ERESOLVE":   false,
		"npm error 404 Not Found -": false,
	} {
		if offline([]byte(out)) != want {
			t.Errorf("offline(%q) = %t", out, !want)
		}
	}
}
