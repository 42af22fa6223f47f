package config

import "github.com/hashicorp/hcl/v2"

// Report gives findings of packages that read parts of the configuration, such as the conditions of rules, their source
// lines, with secrets masked.
func (c *Config) Report(found hcl.Diagnostics) Diagnostics {
	return newDiagnostics(found, c.files, c.Files, c.Mask)
}
