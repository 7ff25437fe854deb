//go:build !linux

package envoytest

import (
	"os/exec"
	"syscall"
)

// DieWithParent can't be had outside Linux; there the cleanups of the tests
// have to do.
func DieWithParent(*exec.Cmd, syscall.Signal) {}
