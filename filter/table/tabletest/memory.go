// Package tabletest has a map with the semantics of Envoy's shared data, for
// native tests.
package tabletest

import "math/rand/v2"

// Memory is a table.Store in memory. It is not safe for concurrent use: a test
// that wants a race says where it happens, with BeforeSet.
type Memory struct {
	// BeforeSet, if not nil, runs once, ahead of the next Set.
	BeforeSet func()
	// Broken makes every call fail.
	Broken bool
	// Sets counts the calls of Set.
	Sets int

	values map[string]value
	last   uint32
}

type value struct {
	data    []byte
	version uint32
}

// New returns an empty map.
func New() *Memory { return &Memory{values: map[string]value{}} }

// Get implements table.Store.
func (m *Memory) Get(key []byte) (data []byte, version uint32, found, ok bool) {
	v, found := m.values[string(key)]
	return append([]byte(nil), v.data...), v.version, found && !m.Broken, !m.Broken
}

// Set implements table.Store.
func (m *Memory) Set(key, data []byte, version uint32) (stored, ok bool) {
	if before := m.BeforeSet; before != nil {
		m.BeforeSet = nil
		before()
	}
	m.Sets++
	if m.Broken {
		return false, false
	}
	if v, found := m.values[string(key)]; found && v.version != version {
		return false, true
	}
	m.last++
	m.values[string(key)] = value{append([]byte(nil), data...), m.last}
	return true, true
}

// Bytes is how much the values take.
func (m *Memory) Bytes() (n int) {
	for _, v := range m.values {
		n += len(v.data)
	}
	return n
}

// Random fills b from a source that no test depends on.
func Random(b []byte) bool {
	for i := range b {
		b[i] = byte(rand.IntN(256))
	}
	return true
}
