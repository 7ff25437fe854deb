package fleet

import "time"

const (
	// Each failure may cost a request the timeout, so that there are to be few. Of a
	// service that fails half of its calls, though, five in a row come only once in
	// 62 calls, three in 14: it is still asked in between.
	failuresToOpen = 5
	minPause       = 100 * time.Millisecond
	maxPause       = 5 * time.Second
)

// Circuit keeps a dead service from adding its timeout to every request. It opens
// after five failures in a row; then one call per pause goes through as a probe,
// and each probe that fails doubles the pause, from 100 ms to 5 s. Any success
// closes it. The zero Circuit is closed. It is for one worker.
type Circuit struct {
	failures int
	pause    time.Duration // 0 while closed
	until    int64         // no call before
	probing  bool          // a probe has not been heard of
}

// Allows says whether to call at now, in monotonic ns. Who is allowed must call.
func (c *Circuit) Allows(now int64) bool {
	if c.pause == 0 {
		return true
	}
	if now < c.until {
		return false
	}
	// A probe of which nothing is ever heard holds up the next for one pause.
	c.probing, c.until = true, now+int64(c.pause)
	return true
}

// Succeeded says that a call was answered, be it with a refusal.
func (c *Circuit) Succeeded() { *c = Circuit{} }

// Failed says that a call failed at now, in monotonic ns.
func (c *Circuit) Failed(now int64) {
	switch {
	case c.pause > 0 && !c.probing:
		// A call from before the circuit opened: it tells nothing new.
		return
	case c.pause > 0:
		c.pause = min(2*c.pause, maxPause)
	default:
		c.failures++
		if c.failures < failuresToOpen {
			return
		}
		c.pause = minPause
	}
	c.probing, c.until = false, now+int64(c.pause)
}
