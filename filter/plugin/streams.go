package plugin

import "github.com/sluice-proxy/sluice/filter/config"

// stream is what is kept of a request between its headers and its response's.
type stream struct {
	id     uint32
	plugin *Plugin // nil in a slot that is free

	// told is set where the response is to carry headers about the limit.
	told     bool
	refusal  bool // by this filter: the response is its own
	inner    bool // another instance has decided before this one
	families config.HeaderFamilies

	retry     int64 // of a refusal: whole seconds, 0 if no waiting helps
	limit     int64 // units
	remaining int64 // whole units
	reset     int64 // whole seconds

	lasting *lasting // what is still to be done, nil if nothing is
	removes []string // the response headers that no client is to see

	policy, draft []byte // the values of the headers of config.Draft
	sentence      string // of a refusal: its plain sentence
}

// streamSlots is a power of two.
const streamSlots = 1024

// streamTable finds a stream by its id, and costs no allocation for as long as
// ids that lie streamSlots apart are not alive together: Envoy counts them up,
// so only long streams meet, and those go to a map.
type streamTable struct {
	slots    [streamSlots]stream
	overflow map[uint32]*stream
}

func (t *streamTable) create(id uint32, p *Plugin) {
	slot := &t.slots[id%streamSlots]
	if slot.plugin != nil && slot.id != id {
		slot = &stream{}
		t.overflow[id] = slot
	}
	slot.id, slot.plugin, slot.told, slot.lasting, slot.removes = id, p, false, nil, nil
}

// find returns nil for an id that is not a stream's.
func (t *streamTable) find(id uint32) *stream {
	slot := &t.slots[id%streamSlots]
	if slot.id == id && slot.plugin != nil {
		return slot
	}
	if len(t.overflow) == 0 {
		return nil
	}
	return t.overflow[id]
}

func (t *streamTable) remove(s *stream) {
	s.plugin = nil
	if len(t.overflow) > 0 {
		delete(t.overflow, s.id)
	}
}
