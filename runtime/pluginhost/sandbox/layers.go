package sandbox

import (
	"cmp"
	"fmt"

	"github.com/hermesd/hermesd/internal/confine"
	"github.com/hermesd/hermesd/internal/procgroup"
)

// Layer is one measure that keeps a program apart, and what became of it.
type Layer = confine.Layer

// Groups makes control groups for programs; a daemon has one for all.
type Groups = confine.Groups

// Layers tells what holds for a started program. Nothing is said to be applied that is not.
func Layers(process *procgroup.Process, level string) []Layer {
	level = cmp.Or(level, Default)
	contained := process.Containment()
	layers := []Layer{
		{Name: "clean environment", Applied: true, Detail: "PATH, HOME, LANG, TZ, env and pass_env"},
		{Name: "process group", Applied: true, Detail: "ends with its leader"},
		{Name: "containment of descendants", Applied: contained != procgroup.ContainedByGroup, Detail: string(contained)},
	}
	if level == None {
		layers[2].Detail = fmt.Sprintf("isolation = %q", level)
	}
	layers = append(layers, process.Layers()...)
	if level == Strict {
		network := Layer{Name: "no network", Applied: !process.Networked(), Detail: "a network namespace of its own"}
		if process.Networked() {
			network.Detail = "this machine allows hermesd no network namespace"
		}
		layers = append(layers, network)
	}
	return layers
}
