//go:build linux && !amd64 && !arm64

package confine

const machine = 0 // there is no filter

var machineRefused []uint32
