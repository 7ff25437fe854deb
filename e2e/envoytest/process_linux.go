package envoytest

import (
	"os/exec"
	"syscall"
)

// DieWithParent has the kernel send the process a signal when the test program
// ends without running its cleanups, as after a panic or the timeout of go test.
func DieWithParent(cmd *exec.Cmd, signal syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: signal}
}
