// Package table keeps buckets in a map that all workers share, in bounded
// memory. It knows nothing of hosts and limits: it is given a Store, hashes
// client keys to buckets, and reads and compare-and-swaps their states. It may
// import package algorithms.
//
// The map is Envoy's shared data, from which nothing can ever be deleted. So
// the table is a fixed number of pages, each one value of the map with room for
// a fixed number of entries; a keyed hash says on which page a bucket lies.
package table

import (
	"encoding/binary"
	"math/bits"

	"github.com/dchest/siphash"

	"github.com/sluice-proxy/sluice/algorithms"
)

// Store is the map that the workers share.
type Store interface {
	// Get returns a value, which the caller may change until its next callback,
	// and its version. found is false where the key is absent, ok is false
	// where the store failed.
	Get(key []byte) (value []byte, version uint32, found, ok bool)
	// Set writes a value if the key is absent or its version is still the given
	// one. stored is false if it is not, ok is false where the store failed.
	Set(key, value []byte, version uint32) (stored, ok bool)
}

// Absent is a version that no value ever has (Envoy counts versions up from 1).
// Setting a value with it creates the key or fails.
const Absent = 0xFFFFFFFF

// layout begins every key: values of another layout are never parsed. What
// follows is short, since Envoy copies keys, and up to 22 bytes do not make its
// standard library allocate.
const layout = "sluice1:"

// MaxRetries bounds the attempts at one compare-and-swap. Each failed attempt
// means that somebody else advanced, so a working store never comes near it.
const MaxRetries = 10_000

// Table is one namespace's buckets. It is not safe for concurrent use: every
// worker has its own Table on the common Store.
type Table struct {
	store  Store
	secret [2]uint64
	pages  uint32
	key    []byte // of a page; its number stands at keyAt
	keyAt  int
	page   [pageWords]uint64 // a page that is growing

	Counts
}

// Counts are what a worker has done to the table.
type Counts struct {
	Evicted uint64 // live buckets that were thrown out
	Retries uint64 // compare-and-swaps that were lost
	Added   uint64 // places that were added to pages
}

// Open returns the table of a namespace with room for maxBuckets buckets. The
// secret of its hash is shared: the first worker to come draws it from random,
// which fills a slice with unpredictable bytes. ok is false where the store
// or the random source fails.
func Open(store Store, namespace string, maxBuckets int, random func([]byte) bool) (t *Table, ok bool) {
	t = &Table{store: store, pages: pagesFor(maxBuckets)}
	t.key = append(t.key, layout...)
	t.key = binary.BigEndian.AppendUint32(t.key, uint32(maxBuckets))
	t.keyAt = len(t.key)
	t.key = append(t.key, 0, 0, 0, 0)
	t.key = append(t.key, namespace...)

	t.secret, ok = sharedSecret(store, random)
	return t, ok
}

// sharedSecret returns the secret that all workers use, and makes it if it is
// not there yet.
func sharedSecret(store Store, random func([]byte) bool) (secret [2]uint64, ok bool) {
	key := []byte(layout + "secret")
	for range MaxRetries {
		value, _, found, ok := store.Get(key)
		if !ok {
			return secret, false
		}
		if found {
			if len(value) != 16 {
				return secret, false
			}
			return [2]uint64{binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])}, true
		}
		drawn := make([]byte, 16)
		if !random(drawn) {
			return secret, false
		}
		if _, ok := store.Set(key, drawn, Absent); !ok {
			return secret, false
		}
		// Whoever was first, all read what is there now.
	}
	return secret, false
}

// Seed is the secret of one limit's hash, made from the table's own.
type Seed [2]uint64

// Seed returns the seed of a limit. Limits of different identity never share a
// bucket, those of the same identity always do.
func (t *Table) Seed(identity string) Seed {
	a, b := siphash.Hash128(t.secret[0], t.secret[1], []byte(identity))
	return Seed{a, b}
}

// Bucket is where the state of one client under one limit lies. The page follows
// from the fingerprint's first bits; the others tell the buckets of a page apart,
// 45 of them in the largest table: the odds that any two of 10,000,000 buckets
// are one are 3 in a million.
type Bucket struct {
	page        uint32
	fingerprint uint64
}

// Bucket returns the bucket of a client key.
func (t *Table) Bucket(seed Seed, key []byte) Bucket {
	fingerprint := siphash.Hash(seed[0], seed[1], key)
	page, _ := bits.Mul64(fingerprint, uint64(t.pages))
	return Bucket{page: uint32(page), fingerprint: fingerprint}
}

// Record is a bucket as it was read: what Write needs to replace it.
type Record struct {
	State algorithms.State
	// Written is when the bucket's page was last written, in monotonic ns. No
	// decision may be made as of an earlier time: a bucket that was whole by then
	// may have lost its place, and would be taken for one that was whole earlier.
	Written int64

	page    page
	version uint32
	at      int // where the entry begins on the page; -1 if it has none
}

// Read reads a bucket into r. One that has no entry has the zero State. r is
// good for one Write, and until the next callback begins. ok is false where the
// store failed.
func (t *Table) Read(b Bucket, r *Record) (ok bool) {
	value, version, found, ok := t.store.Get(t.pageKey(b.page))
	page := asPage(value)
	if !found || len(page) == 0 {
		return r.readNothing(version, found, ok)
	}
	r.page, r.version, r.Written = page, version, int64(page[0])
	r.at = page.find(b.fingerprint)
	if r.at < 0 {
		r.State = algorithms.State{}
		return true
	}
	page.load(r.at, &r.State)
	return true
}

// readNothing is Read where there is no page.
func (r *Record) readNothing(version uint32, found, ok bool) bool {
	if !found {
		version = Absent
	}
	*r = Record{version: version, at: -1}
	return ok
}

// Write replaces a bucket that was read by its next state. d is the decision
// that led to it at now, by which the table knows when the bucket will be whole
// and what share of it is left. stored is false if somebody else wrote to the
// page in between: read again. ok is false where the store failed.
func (t *Table) Write(b Bucket, r *Record, next *algorithms.State, d *algorithms.Decision, now int64) (stored, ok bool) {
	if r.at < 0 {
		return t.add(b, r, next, d, now)
	}
	return t.set(b, r, r.page, r.at, next, d, now)
}

// add writes a bucket that has no entry yet.
//
//go:noinline
func (t *Table) add(b Bucket, r *Record, next *algorithms.State, d *algorithms.Decision, now int64) (stored, ok bool) {
	page, at, evicts := t.makeRoom(r.page, now)
	grows := len(page) > len(r.page)
	stored, ok = t.set(b, r, page, at, next, d, now)
	switch {
	case stored && evicts:
		t.Evicted++
	case stored && grows:
		t.Added++
	}
	return stored, ok
}

// set writes a bucket's entry, and with it the page.
func (t *Table) set(b Bucket, r *Record, p page, at int, next *algorithms.State, d *algorithms.Decision, now int64) (stored, ok bool) {
	p[0] = uint64(now)
	p.store(at, b.fingerprint, whole(now, d), share(d), next)
	stored, ok = t.store.Set(t.pageKey(b.page), p.bytes(), r.version)
	if ok && !stored {
		t.Retries++
	}
	return stored, ok
}

func (t *Table) pageKey(page uint32) []byte {
	binary.BigEndian.PutUint32(t.key[t.keyAt:], page)
	return t.key
}
