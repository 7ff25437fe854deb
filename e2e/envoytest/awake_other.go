//go:build !linux

package envoytest

import "testing"

// KeepAwake can't be had outside Linux; there what timers show has to do.
func KeepAwake(testing.TB) {}
