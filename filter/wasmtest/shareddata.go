package wasmtest

// SharedData is what the VMs of a process share: one map for each vm_id. There
// is no way to delete from it.
type SharedData struct {
	// IgnoreCAS makes every write succeed, whatever its cas. It is a fault that
	// tests put in to show that they would notice it.
	IgnoreCAS bool

	values map[sharedKey]sharedValue
	bytes  int
	cas    uint32 // of the last write
}

type sharedKey struct{ vmID, key string }

type sharedValue struct {
	value string
	cas   uint32
}

// NewSharedData returns shared data that nobody has written to.
func NewSharedData() *SharedData {
	return &SharedData{values: map[sharedKey]sharedValue{}}
}

// Entries is the number of keys.
func (d *SharedData) Entries() int { return len(d.values) }

// Bytes is the size of all keys and values together.
func (d *SharedData) Bytes() int { return d.bytes }

func (d *SharedData) get(key sharedKey) (value string, cas uint32, status Status) {
	v, found := d.values[key]
	if !found {
		return "", 0, NotFound
	}
	return v.value, v.cas, OK
}

// set writes if the key is absent, if cas is 0, or if cas is that of the last
// write to the key. Every write of any key takes the next number of one
// counter, which begins with 1 and leaves 0 out.
func (d *SharedData) set(key sharedKey, value string, cas uint32) Status {
	old, found := d.values[key]
	if found && cas != 0 && cas != old.cas && !d.IgnoreCAS {
		return CASMismatch
	}
	d.cas++
	if d.cas == 0 {
		d.cas++
	}
	if !found {
		d.bytes += len(key.key)
	}
	d.bytes += len(value) - len(old.value)
	d.values[key] = sharedValue{value, d.cas}
	return OK
}
