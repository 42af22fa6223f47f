//go:build !unix

package main

// nonblock is nothing here: there are no named pipes in directories.
const nonblock = 0
