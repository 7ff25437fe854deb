package table

import (
	"math"
	"unsafe"

	"github.com/sluice-proxy/sluice/algorithms"
)

// page is the value of one key of the map, as 64-bit words in the machine's
// byte order: the time of the last write (monotonic ns), then a sequence of
// entries. Its length says how many; it grows as entries come, up to
// pageEntries.
//
// An entry is these words:
//
//	0  fingerprint of namespace, limit and client key
//	1  monotonic ns from which on the bucket is whole, as if unused
//	2  the share that is left of it, of 2^32-1
//	3  the State, four words
//
// The second and third are by the settings that last wrote the entry, because
// whoever looks for room may not know the limit.
//
// Words and not bytes because WebAssembly has no cheap way to put a word
// together from bytes, for which Go's encoding/binary needs eight loads.
type page []uint64

const (
	headerWords = 1
	entryWords  = 7
	pageEntries = 56
	pageWords   = headerWords + pageEntries*entryWords

	wholeAt = 1
	shareAt = 2
	stateAt = 3
)

// meanEntries is how many entries an average page holds when the table holds as
// many buckets as it promises. Buckets fall on pages like balls into bins, so
// the odds that any page would then need more than pageEntries are about
// pages × P(Poisson(24) > 56) = pages × 7.4e-9: 3e-5 for 100,000 buckets and
// 3e-3 for 10,000,000.
const meanEntries = 24

func pagesFor(maxBuckets int) uint32 {
	return uint32((maxBuckets + meanEntries - 1) / meanEntries)
}

// MaxBytes is the most that the values of a table with room for maxBuckets
// buckets can take.
func MaxBytes(maxBuckets int) int64 {
	return int64(pagesFor(maxBuckets)) * pageWords * 8
}

// asPage returns a value of the map as a page, in place where it is aligned. A
// value that cannot be a page is an empty one.
func asPage(value []byte) page {
	n := len(value) / 8
	if len(value)%8 != 0 || n < headerWords || n > pageWords || (n-headerWords)%entryWords != 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(value))
	if uintptr(p)%8 != 0 {
		words := make(page, n)
		copy(words.bytes(), value)
		return words
	}
	return (*[pageWords]uint64)(p)[:n:n]
}

// bytes returns the page as a value for the map.
func (p page) bytes() []byte {
	return (*[pageWords * 8]byte)(unsafe.Pointer(unsafe.SliceData(p)))[:len(p)*8]
}

// find returns where the entry of a fingerprint begins, or -1.
func (p page) find(fingerprint uint64) int {
	for at := headerWords; at+entryWords <= len(p); at += entryWords {
		if p[at] == fingerprint {
			return at
		}
	}
	return -1
}

// makeRoom returns the page with room for one more entry at at. It takes, in
// this order: the place of a bucket that is whole, which says nothing that its
// absence would not say; new room; the place of the live bucket that has the
// largest share left, of those the one that is whole soonest. Thus made-up
// keys throw out each other, and not a client that has spent more than they.
func (t *Table) makeRoom(p page, now int64) (grown page, at int, evicts bool) {
	victim, mostLeft, soonest := 0, uint64(0), int64(math.MaxInt64)
	for at := headerWords; at+entryWords <= len(p); at += entryWords {
		whole, left := int64(p[at+wholeAt]), p[at+shareAt]
		if whole <= now {
			return p, at, false
		}
		if victim == 0 || left > mostLeft || left == mostLeft && whole < soonest {
			victim, mostLeft, soonest = at, left, whole
		}
	}
	if len(p) < pageWords {
		n := max(headerWords, copy(t.page[:], p))
		return t.page[:n+entryWords], n, false
	}
	return p, victim, true
}

func (p page) load(at int, s *algorithms.State) {
	entry := p[at : at+entryWords : at+entryWords]
	s[0], s[1], s[2], s[3] = entry[stateAt], entry[stateAt+1], entry[stateAt+2], entry[stateAt+3]
}

func (p page) store(at int, fingerprint uint64, whole int64, share uint64, s *algorithms.State) {
	entry := p[at : at+entryWords : at+entryWords]
	entry[0], entry[wholeAt], entry[shareAt] = fingerprint, uint64(whole), share
	entry[stateAt], entry[stateAt+1], entry[stateAt+2], entry[stateAt+3] = s[0], s[1], s[2], s[3]
}

// whole is when the bucket will be whole, saturating.
func whole(now int64, d *algorithms.Decision) int64 {
	if int64(d.Reset) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(d.Reset)
}

// share is what a decision left of the bucket, of 2^32-1.
func share(d *algorithms.Decision) uint64 {
	if d.Limit <= 0 || d.Remaining <= 0 {
		return 0
	}
	return uint64(min(d.Remaining, d.Limit)) * math.MaxUint32 / uint64(d.Limit)
}
