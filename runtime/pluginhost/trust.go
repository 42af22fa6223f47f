package pluginhost

import (
	"maps"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Trust is what the operator has agreed to; the lock file of package store is one.
type Trust interface {
	// Binary returns why a program with this SHA-256 digest must not start, nil if it may.
	Binary(digest string) error
	// Tools returns why each definition that must not be used is refused, by its full name.
	Tools(tools []tool.Definition) map[tool.Name]string
}

// distrust adds what the operator has not agreed to.
func (o *Options) distrust(tools []tool.Definition, refused map[tool.Name]string) {
	if o.Trust != nil {
		maps.Copy(refused, o.Trust.Tools(tools))
	}
}

// Reconsider asks again whether binary and definitions are trusted, after the operator has decided anew.
func (p *Provider) Reconsider() {
	p.mu.Lock()
	known := p.known
	p.hash = "" // so that the definitions are judged again
	p.mu.Unlock()
	if known != nil {
		p.learn(known)
	}
	if p.supervisor.Status().State == provider.Quarantined {
		p.Restart()
	}
}
