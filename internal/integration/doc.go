// Package integration holds the tests that run the real daemon with real plugins, real MCP servers and programs that are
// not ours. It has no code of its own.
package integration
