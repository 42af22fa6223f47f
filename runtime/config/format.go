package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format lays a file out in the canonical way and changes nothing else. The path decides the syntax as in [Load]; a file
// that does not parse comes back as diagnostics.
func Format(path string, src []byte) ([]byte, Diagnostics) {
	l := newLoader(path, (*Environment)(nil).orProcess())
	l.parse(path, src)
	diags := newDiagnostics(l.diags, l.files, l.order, l.secrets.mask)
	if diags.HasErrors() {
		return nil, diags
	}
	if !strings.HasSuffix(path, ".json") {
		return hclwrite.Format(src), diags
	}
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(src), "", "  "); err != nil {
		l.trouble("Invalid JSON", fmt.Errorf("%s: %w", path, err))
		return nil, newDiagnostics(l.diags, l.files, l.order, l.secrets.mask)
	}
	out.WriteByte('\n')
	return out.Bytes(), diags
}
