package wasmtest

import "fmt"

// Call is one hostcall as the host has seen it.
type Call struct {
	VM       int    // the VM's Index
	Context  uint32 // whose callback made the call
	Callback string // the callback that made the call
	Name     string
	// Subject is what the call is about: the key in shared data, the path of a
	// property, the name of a header or of a metric.
	Subject string
	// CAS is the version that a write to shared data expected, or that a read
	// returned.
	CAS uint32
	// Clock and Time are what a reading of a clock asked for (0 wall, 1
	// monotonic) and returned in ns.
	Clock  uint32
	Time   int64
	Status Status
}

// String is one line of a trace.
func (c Call) String() string {
	line := fmt.Sprintf("VM %d context %d %s: %s", c.VM, c.Context, c.Callback, c.Name)
	switch c.Name {
	case "clock_time_get":
		line += fmt.Sprintf(" clock %d = %d", c.Clock, c.Time)
	case "proxy_get_shared_data", "proxy_set_shared_data":
		line += fmt.Sprintf(" %q cas %d", c.Subject, c.CAS)
	default:
		if c.Subject != "" {
			line += fmt.Sprintf(" %q", c.Subject)
		}
	}
	return fmt.Sprintf("%s -> %d", line, c.Status)
}
