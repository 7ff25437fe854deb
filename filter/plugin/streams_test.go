package plugin

import "testing"

func TestALongStreamIsNotLostToTheOnesThatCameLater(t *testing.T) {
	table := &streamTable{overflow: map[uint32]*stream{}}
	p := &Plugin{}
	long := []uint32{7, 7 + streamSlots, 7 + 5*streamSlots}
	for i, id := range long {
		table.create(id, p)
		table.find(id).remaining = int64(i)
	}
	for id := uint32(10_000); id < 20_000; id++ {
		table.create(id, p)
		if table.find(id) == nil {
			t.Fatalf("stream %d is lost", id)
		}
		table.remove(table.find(id))
		if table.find(id) != nil {
			t.Fatalf("stream %d does not end", id)
		}
	}
	for i, id := range long {
		if s := table.find(id); s == nil || s.remaining != int64(i) {
			t.Errorf("stream %d was mixed up: %+v", id, s)
		}
		table.remove(table.find(id))
	}
	if len(table.overflow) != 0 {
		t.Errorf("%d streams that ended are still kept", len(table.overflow))
	}
}
