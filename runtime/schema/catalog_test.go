package schema_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hermesd/hermesd/internal/testenv"
	"github.com/hermesd/hermesd/runtime/schema"
)

// TestRealSchemasCompile compiles what real servers declare. More than one in a hundred that cannot be used is a fault
// of ours.
func TestRealSchemasCompile(t *testing.T) {
	root := testenv.Data(t)
	for _, name := range []string{"npm-servers", "livemcp", "azure"} {
		t.Run(name, func(t *testing.T) {
			total, refused := 0, 0
			var slowest time.Duration
			for _, source := range catalog(t, filepath.Join(root, name, "catalog.jsonl.gz")) {
				total++
				start := time.Now()
				if err := schema.Check(source); err != nil {
					refused++
					t.Logf("%v: %.200s", err, source)
				}
				slowest = max(slowest, time.Since(start))
			}
			t.Logf("%d of %d cannot be used, the slowest took %v", refused, total, slowest)
			if refused*100 > total {
				t.Errorf("%d of %d cannot be used", refused, total)
			}
		})
	}
}

func catalog(t *testing.T, path string) (schemas []json.RawMessage) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row struct{ Parameters json.RawMessage }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		schemas = append(schemas, row.Parameters)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return schemas
}
