package envoytest

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// KeepAwake keeps every processor of the machine from halting until the test
// ends, by a process for each that runs only when nothing else would. The host
// of a virtual machine gives a halted processor to others, and has it back late:
// a timer then shows how busy the host is, not what set it.
func KeepAwake(tb testing.TB) {
	tb.Helper()
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		DieWithParent(cmd, syscall.SIGKILL)
		if err := cmd.Start(); err != nil {
			tb.Fatalf("can't keep the processors awake: %v", err)
		}
		tb.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // says only that it was killed
		})
		if err := unix.SchedSetAttr(cmd.Process.Pid, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0); err != nil {
			tb.Fatalf("can't have the process that keeps a processor awake run only when nothing else would: %v", err)
		}
	}
}
