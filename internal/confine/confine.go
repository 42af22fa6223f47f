// Package confine takes rights away from a program before it runs: files, system calls, the network, memory, capabilities.
//
// A [Spec] says what to take. The shim of internal/procgroup applies it to the thread that then forks the program, so that
// the program has it from its first instruction and can never get rid of it. What the machine cannot do is reported, not
// pretended: each measure is a [Layer].
package confine

// Spec is what to take away. The zero value takes nothing.
type Spec struct {
	// Limits are resource limits; 0 leaves a resource as it is.
	Limits Limits `json:"limits,omitzero"`
	// Files restricts files to Read (also executing) and Write (also reading), whole folders or single files. A path that
	// does not exist opens nothing.
	Files       bool     `json:"files,omitempty"`
	Read, Write []string `json:",omitempty"`
	// Hide puts emptiness over folders and files (sockets above all, which Files cannot keep from being connected to). It
	// needs a mount namespace.
	Hide []string `json:"hide,omitempty"`
	// Calls refuses the system calls that ordinary programs never make: tracing, mounting, loading code into the kernel.
	Calls bool `json:"calls,omitempty"`
	// NoNetwork refuses every socket but those of the file system. NoNamespaces refuses namespaces of its own.
	NoNetwork    bool `json:"no_network,omitempty"`
	NoNamespaces bool `json:"no_namespaces,omitempty"`
	// Capabilities drops the administrator's rights, all but those of KeepCapabilities.
	Capabilities     bool  `json:"capabilities,omitempty"`
	KeepCapabilities []int `json:"keep_capabilities,omitempty"`
}

// Limits are resource limits as setrlimit(2) has them. A core file is never written.
type Limits struct {
	Data      uint64 `json:"data,omitempty"`      // bytes of writable private memory (RLIMIT_DATA)
	Files     uint64 `json:"files,omitempty"`     // open descriptors
	Processes uint64 `json:"processes,omitempty"` // processes and threads; only where they are counted apart
}

// Surroundings are what the program's namespaces make possible.
type Surroundings struct {
	Mounts bool // a mount namespace of its own in which it may mount
	Users  bool // a user namespace of its own: processes are counted apart
}

// Layer is one measure and what became of it.
type Layer struct {
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	Detail  string `json:"detail,omitempty"` // how, or why not
}

// The names of the layers.
const (
	LayerPrivileges   = "no new privileges"
	LayerCapabilities = "capabilities"
	LayerMemory       = "memory limit"
	LayerDescriptors  = "descriptor limit"
	LayerProcesses    = "process limit"
	LayerHide         = "hidden sockets"
	LayerFiles        = "files"
	LayerCalls        = "system calls"
	LayerNetwork      = "sockets"
	LayerGroup        = "control group"
)

func applied(name, detail string) Layer { return Layer{Name: name, Applied: true, Detail: detail} }

func missing(name, why string) Layer { return Layer{Name: name, Detail: why} }

// outcome is an applied layer, or a missing one if there is an error.
func outcome(name, detail string, err error) Layer {
	if err != nil {
		return missing(name, err.Error())
	}
	return applied(name, detail)
}

// Unavailable lists what Apply would have done, each with the reason why it was not.
func (s *Spec) Unavailable(why string) []Layer {
	layers := []Layer{missing(LayerPrivileges, why)}
	for _, l := range []struct {
		name   string
		wanted bool
	}{
		{LayerCapabilities, s.Capabilities}, {LayerMemory, s.Limits.Data > 0}, {LayerDescriptors, s.Limits.Files > 0},
		{LayerProcesses, s.Limits.Processes > 0}, {LayerHide, len(s.Hide) > 0}, {LayerFiles, s.Files}, {LayerCalls, s.Calls},
		{LayerNetwork, s.NoNetwork},
	} {
		if l.wanted {
			layers = append(layers, missing(l.name, why))
		}
	}
	return layers
}
