package host

// arena is the memory that the host writes returned data into. While a stream
// callback runs it is one chunk that is used from its start again each time, so
// that a request costs no allocation; what does not fit is allocated. In all
// other callbacks every piece is allocated, because the SDK hands out strings
// that point into it and may keep them.
type arena struct {
	chunk []byte
	used  int
	on    bool
	last  []byte // the piece handed out last
}

func (a *arena) begin(on bool) {
	a.used, a.on, a.last = 0, on, nil
}

func (a *arena) allocate(size int) []byte {
	aligned := (size + 7) &^ 7
	switch {
	case size == 0:
		// The host needs an address even for nothing.
		a.last = make([]byte, 0, 1)
	case !a.on || a.used+aligned > len(a.chunk):
		a.last = make([]byte, size)
	default:
		a.last = a.chunk[a.used : a.used+size : a.used+aligned]
		a.used += aligned
	}
	return a.last
}
