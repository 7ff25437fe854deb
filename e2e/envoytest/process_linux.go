package envoytest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel send the process a signal when the test program
// ends without running its cleanups, as after a panic or the timeout of go test.
func dieWithParent(cmd *exec.Cmd, signal syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: signal}
}
