//go:build race

package pluginhost_test

// slowness is how much slower everything may be under the race detector.
const slowness = 5
