//go:build !unix

package testbin

// lock does nothing: the tests that build programs in parallel run on Unix.
func lock(string) (unlock func(), err error) { return func() {}, nil }
