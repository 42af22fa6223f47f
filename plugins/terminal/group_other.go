//go:build !unix

package main

import "os/exec"

// lead does nothing: process groups are a thing of Unix. Only the command itself is ended here.
func lead(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) {
	cmd.Process.Kill() //nolint:errcheck // it may have ended, which is what is wanted
}
