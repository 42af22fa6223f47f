//go:build !race

package pluginhost_test

// slowness is how much slower than its bounds everything may be here.
const slowness = 1
