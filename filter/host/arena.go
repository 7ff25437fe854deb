package host

import "unsafe"

// arena is the memory that the host writes returned data into. While a stream
// callback runs it is one chunk that is used from its start again each time, so
// that a request costs no allocation; what does not fit is allocated. In all
// other callbacks every piece is allocated, because the SDK hands out strings
// that point into it and may keep them.
type arena struct {
	chunk []byte
	used  int // of the chunk; all of it where pieces are allocated
	// The piece handed out last.
	last unsafe.Pointer
	size int
}

// begin empties the chunk, or puts it out of use.
func (a *arena) begin(on bool) {
	a.used, a.last, a.size = 0, nil, 0
	if !on {
		a.used = len(a.chunk)
	}
}

// allocate returns size bytes; one where size is 0, since the host needs an
// address even for nothing.
func (a *arena) allocate(size int) unsafe.Pointer {
	a.size = size
	if end := a.used + (size+7)&^7; end <= len(a.chunk) && size > 0 {
		a.last = unsafe.Pointer(&a.chunk[a.used])
		a.used = end
	} else {
		a.last = unsafe.Pointer(unsafe.SliceData(make([]byte, max(size, 1))))
	}
	return a.last
}

// piece returns the first size bytes of what was handed out last, or nil if that
// is shorter. Who appends to it gets a copy.
func (a *arena) piece(size int) []byte {
	if size > a.size || size == 0 {
		return nil
	}
	// unsafe.Slice would multiply to see whether this overflows.
	return (*[longest]byte)(a.last)[:size:size]
}

// longest is more than a 32-bit host can return.
const longest = 1 << 32
