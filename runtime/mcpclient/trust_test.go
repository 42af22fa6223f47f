package mcpclient_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// word is an operator who trusts one binary, and every tool but one.
type word struct {
	binary  atomic.Pointer[string] // nil trusts any
	refused atomic.Pointer[string] // own name
	asked   atomic.Pointer[string] // about which binary
}

func (w *word) Binary(digest string) error {
	w.asked.Store(&digest)
	if want := w.binary.Load(); want != nil && *want != digest {
		return errors.New("it changed")
	}
	return nil
}

func (w *word) Tools(tools []tool.Definition) map[tool.Name]string {
	refused := map[tool.Name]string{}
	for _, d := range tools {
		if own := w.refused.Load(); own != nil && d.OwnName == *own {
			refused[d.Name] = "it changed"
		}
	}
	return refused
}

func TestWhatIsNotTrustedIsRefusedUntilTheOperatorDecides(t *testing.T) {
	w := &word{}
	raw, none := "raw", "none"
	w.refused.Store(&raw)
	o := fault(t)
	o.Trust = w
	r := start(t, o)
	offer := r.ready()
	if len(offer.Refused) != 1 || !strings.HasSuffix(firstKey(offer.Refused), "__raw") {
		t.Errorf("refused %v", offer.Refused)
	}
	if w.asked.Load() == nil {
		t.Error("nobody was asked about the program")
	}
	w.refused.Store(&none)
	r.Reconsider()
	r.await("the tool", func(o *provider.Offer) bool { return len(o.Refused) == 0 })
	r.alive()
}

func firstKey(m map[string]string) string {
	for k := range m {
		return k
	}
	return ""
}

func TestTheServersOwnFileIsHeldAgainstTheOperatorsWord(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "server.sh")
	if err := os.WriteFile(script, []byte("exit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("exit 3\n"))
	digest, other := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	for name, tt := range map[string]struct {
		trusted *string
		want    string
		state   provider.State
	}{"trusted": {&digest, "exit status 3", provider.Backoff}, "changed": {&other, "it changed", provider.Quarantined}} {
		t.Run(name, func(t *testing.T) {
			w := &word{}
			w.binary.Store(tt.trusted)
			r := start(t, mcpclient.Options{Name: "kb", Command: []string{"sh", "server.sh"}, Dir: dir, Trust: w})
			r.await("a failed start", func(o *provider.Offer) bool {
				return o.Status.State == tt.state && strings.Contains(o.Status.Reason, tt.want)
			})
			if tt.state == provider.Quarantined {
				w.binary.Store(nil)
				r.Reconsider()
				r.await("a start once the operator agrees", func(o *provider.Offer) bool { return strings.Contains(o.Status.Reason, "exit status 3") })
			}
		})
	}
}
