package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/runtime/audit"
)

func TestTampering(t *testing.T) {
	for name, tt := range map[string]struct {
		query string
		seq   int64
		want  string
	}{
		"a changed outcome":         {"UPDATE audit SET outcome = 'error' WHERE seq = 4", 4, "changed"},
		"a changed time":            {"UPDATE audit SET time = time + 1 WHERE seq = 3", 3, "changed"},
		"a changed digest":          {"UPDATE audit SET args_digest = zeroblob(32) WHERE seq = 3", 3, "changed"},
		"text moved between fields": {"UPDATE audit SET agent = agent || session, session = '' WHERE seq = 3", 3, "changed"},
		"a removed record":          {"DELETE FROM audit WHERE seq = 3", 3, "missing"},
		"a removed first record":    {"DELETE FROM audit WHERE seq = 1", 1, "missing"},
		"a removed end":             {"DELETE FROM audit WHERE seq >= 5", 5, "missing"},
		"a removed and closed gap":  {"DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = -(seq - 1) WHERE seq > 3; UPDATE audit SET seq = -seq WHERE seq < 0", 3, "changed"},
		"two records exchanged":     {"UPDATE audit SET seq = 100 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 100", 3, "moved"},
		"an added record":           {"INSERT INTO audit SELECT 7, time, kind, 'x', agent, session, via, tool, source, source_name, args_digest, args, coerced, rule, approval, answered_by, outcome, code, duration, result_digest, hash FROM audit WHERE seq = 6", 7, "changed"},
		"a forged checkpoint":       {"DELETE FROM audit WHERE seq <= 3; INSERT INTO audit_checkpoint SELECT 1, 3, zeroblob(32), 0, zeroblob(64)", 3, "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, t.TempDir(), audit.Options{})
			for i := range 3 {
				call(t, b, fmt.Sprint(i))
				written(t, b, int64(2*i+2))
			}
			sound(t, b)
			b.write(t, tt.query)
			r, err := b.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Fault == nil || r.Fault.Seq != tt.seq || !strings.Contains(r.Fault.Reason, tt.want) {
				t.Errorf("got %+v, want record %d %s", r.Fault, tt.seq, tt.want)
			}
		})
	}
}
