//go:build race

package searchtest_test

// raced says that the race detector is on.
const raced = true
