package plugin

import (
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/table"
)

// metrics are the counters of what should not happen. All are defined when they
// are first needed, so a healthy filter costs nothing for them.
type metrics struct {
	ids              map[string]uint32
	evicted, retries uint64 // how much of the table's counts has been reported
}

// table reports what the table has counted.
func (m *metrics) table(t *table.Table) {
	if t.Evicted != m.evicted {
		m.add("sluice.table.evictions", t.Evicted-m.evicted)
		m.evicted = t.Evicted
	}
	if t.Retries != m.retries {
		m.add("sluice.table.cas_retries", t.Retries-m.retries)
		m.retries = t.Retries
	}
}

func (m *metrics) add(name string, n uint64) {
	id, defined := m.ids[name]
	if !defined {
		var status host.Status
		if id, status = host.DefineMetric(host.Counter, name); status != host.OK {
			return // a metric that can't be had is no reason to fail a request
		}
		if m.ids == nil {
			m.ids = map[string]uint32{}
		}
		m.ids[name] = id
	}
	host.AddMetric(id, int64(n))
}
