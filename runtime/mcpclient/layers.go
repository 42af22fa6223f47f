package mcpclient

import "github.com/hermesd/hermesd/runtime/pluginhost/sandbox"

// Layers tells what keeps the last started process apart; nil for a server over HTTP, and before the first start.
func (p *Provider) Layers() []sandbox.Layer {
	if l := p.processLayers.Load(); l != nil {
		return *l
	}
	return nil
}
