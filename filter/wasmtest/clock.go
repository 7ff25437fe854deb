package wasmtest

import "time"

// Clock is the time of the process. It stands still unless it is moved.
type Clock struct {
	// Mono is the monotonic clock and Wall the time since 1970-01-01 UTC, both
	// in ns. They are independent, as they are in a machine whose time of day
	// is being corrected.
	Mono, Wall int64
}

// Advance moves both clocks.
func (c *Clock) Advance(d time.Duration) {
	c.Mono += int64(d)
	c.Wall += int64(d)
}
