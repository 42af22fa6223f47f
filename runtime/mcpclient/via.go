package mcpclient

import "net/http"

// How daemons on the way to a server are told to it, so that a way that leads back to one of them is noticed: ids,
// separated by commas, the nearest first.
const (
	ViaHeader      = "Hermesd-Via"
	ViaEnvironment = "HERMESD_VIA"
)

// via adds to a request which daemons it comes from.
func (o *Options) via(h http.Header) {
	if o.Via != nil {
		h.Set(ViaHeader, o.Via())
	}
}

// viaEnv is the same for a process.
func (o *Options) viaEnv() []string {
	if o.Via == nil {
		return nil
	}
	return []string{ViaEnvironment + "=" + o.Via()}
}
