// Package pluginpb is hermes.plugin.v1, the contract between hermesd and its plugins: the proto file and the Go code made
// from it. Authors in Go use package pluginsdk; authors in other languages need plugin.proto and the handshake that
// docs/plugin-authors/contract.md spells out.
package pluginpb

//go:generate go run -C ../../tools ./protogen ../pluginsdk/pluginpb/plugin.proto
