//go:build !linux

package envoytest

import (
	"os/exec"
	"syscall"
)

// dieWithParent can't be had outside Linux; there the cleanups of the tests
// have to do.
func dieWithParent(*exec.Cmd, syscall.Signal) {}
