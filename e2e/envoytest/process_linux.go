package envoytest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when the test program ends
// without running its cleanups, as after a panic or the timeout of go test.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
