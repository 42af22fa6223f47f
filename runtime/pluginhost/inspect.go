package pluginhost

import (
	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/pluginhost/sandbox"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Inspection is all that is known of a plugin, for `hermesd plugin inspect`.
type Inspection struct {
	Identity provider.Identity
	Status   provider.Status

	Path   string
	Args   []string
	Digest string // SHA-256 of the binary that was last started or found in the cache; "" before
	Pinned bool   // the configuration pins the digest

	// What the plugin says about itself; "" and nil before it was started once.
	Name, Version, Description, Homepage, License string
	SDK, Language, Revision                       string
	ContractMin, ContractMax                      uint32
	Capabilities                                  []string

	Grants               []string // what the operator grants
	Cached               bool     // this knowledge is from an earlier run of the daemon
	StateDir, RuntimeDir string
	CacheDir             string
	Layers               []Layer // of isolation, for the last started process

	Delegations []Delegation // what it may do outside calls

	Tools   []tool.Definition
	Unmet   map[tool.Name]string
	Refused map[tool.Name]string
}

// Layer is one measure that keeps a plugin apart.
type Layer = sandbox.Layer

// layers are the measures that were taken for a process.
type layers []Layer

// Inspect tells what is known; it asks nothing of the process.
func (p *Provider) Inspect() Inspection {
	offer := p.Offer()
	o := p.opts
	x := Inspection{
		Identity: p.Identity(), Status: offer.Status, Path: o.Path, Args: o.Args, Pinned: o.SHA256 != "",
		Grants: o.Grant, StateDir: o.StateDir, RuntimeDir: socketRoot(o.RuntimeDir), CacheDir: o.CacheDir,
		Delegations: p.delegations.list(), Tools: offer.Tools, Unmet: offer.Unmet, Refused: offer.Refused,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		x.Layers = *p.running
	}
	if p.known == nil {
		return x
	}
	d := p.known.describe
	x.Digest, x.Cached = p.known.digest, p.known.cached
	x.Name, x.Version, x.Description, x.Homepage, x.License = d.GetName(), d.GetVersion(), d.GetDescription(), d.GetHomepage(), d.GetLicense()
	x.SDK, x.Language, x.Revision = d.GetBuild().GetSdk(), d.GetBuild().GetLanguage(), d.GetBuild().GetRevision()
	x.ContractMin, x.ContractMax, x.Capabilities = d.GetContractMin(), d.GetContractMax(), d.GetCapabilities()
	return x
}

// layersOf tells what holds for a started process.
func (o *Options) layersOf(process *procgroup.Process) *layers {
	executes := Layer{Name: "executes what was hashed", Applied: executable != "", Detail: "open descriptor"}
	if executable == "" {
		executes.Detail = "this system cannot execute an open descriptor: the path is executed"
	}
	certificates := Layer{Name: "certificates on the connection", Applied: o.mtls()}
	if !o.mtls() {
		certificates.Detail = "mtls = false"
	}
	l := append(layers(sandbox.Layers(process, o.Isolation)),
		Layer{Name: "no standard input", Applied: true}, executes, certificates,
		Layer{Name: "socket folder", Applied: true, Detail: "mode 0700"},
	)
	return &l
}
