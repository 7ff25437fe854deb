package wasmtest

// The kinds of metrics; the lowest two bits of a metric's id are its kind.
const (
	counter    = 0
	gauge      = 1
	histogram  = 2
	kindMask   = 3
	idStep     = 4
	lastMetric = histogram
)

// metrics are one VM's ids for metrics of the process: like Envoy, define gives
// a new id every time, and the same name stands for the same metric.
type metrics struct {
	last   [lastMetric + 1]uint32 // the last id of each kind, without the kind
	names  map[uint32]string
	values map[string]uint64 // the process's, shared by all VMs
}

func newMetrics(values map[string]uint64) metrics {
	return metrics{names: map[uint32]string{}, values: values}
}

func (m *metrics) define(kind uint32, name string) (uint32, Status) {
	if kind > lastMetric {
		return 0, BadArgument
	}
	m.last[kind] += idStep
	id := m.last[kind] | kind
	m.names[id] = name
	return id, OK
}

// increment adds to a counter or gauge. A counter only goes up.
func (m *metrics) increment(id uint32, offset int64) Status {
	kind := id & kindMask
	if kind != counter && kind != gauge {
		return BadArgument
	}
	name, found := m.names[id]
	if !found {
		return NotFound
	}
	if kind == counter && offset <= 0 {
		return BadArgument
	}
	m.values[name] += uint64(offset)
	return OK
}

// record sets a gauge, adds to a counter, and counts a value in a histogram,
// of which nothing but the number of values is kept.
func (m *metrics) record(id uint32, value uint64) Status {
	name, found := m.names[id]
	if !found {
		return NotFound
	}
	switch id & kindMask {
	case counter:
		m.values[name] += value
	case gauge:
		m.values[name] = value
	case histogram:
		m.values[name]++
	}
	return OK
}

func (m *metrics) get(id uint32) (uint64, Status) {
	kind := id & kindMask
	if kind != counter && kind != gauge {
		return 0, BadArgument
	}
	name, found := m.names[id]
	if !found {
		return 0, NotFound
	}
	return m.values[name], OK
}
