package wasmtest_test

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

func TestMadeUpKeysFillTheTableAndNoMore(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(`"algorithm":"token_bucket","capacity":5,"refill_rate":"1/h"`))
	spender := request{address: client(0)}
	for range 5 {
		ask(worker, spender)
	}
	const keys = 100_000
	var entries, bytes, memory int
	for i := 1; i <= keys; i++ {
		if a := ask(worker, request{address: client(i)}); !a.admitted() {
			t.Fatalf("client %d: got %+v", i, a)
		}
		if i == keys/2 {
			entries, bytes, memory = host.Shared.Entries(), host.Shared.Bytes(), worker.VM().MemorySize()
		}
	}
	// A bucket takes some tens of bytes, and the table has slack for pages that
	// many keys happen to fall on.
	const maxBuckets, bytesPerBucket = 1000, 200
	if bytes > maxBuckets*bytesPerBucket {
		t.Errorf("the table has %d bytes, want at most %d", bytes, maxBuckets*bytesPerBucket)
	}
	if host.Shared.Entries() != entries || host.Shared.Bytes() > bytes {
		t.Errorf("after %d keys %d entries and %d bytes, after twice as many %d and %d",
			keys/2, entries, bytes, host.Shared.Entries(), host.Shared.Bytes())
	}
	if size := worker.VM().MemorySize(); size > memory {
		t.Errorf("the VM has grown from %d to %d bytes", memory, size)
	}
	if host.Metrics["sluice.table.evictions"] == 0 {
		t.Error("evictions of live buckets are not counted")
	}
	if a := ask(worker, spender); a.status != 429 {
		t.Errorf("the client that had spent its bucket: got %+v", a)
	}
}

func TestThePromisedNumberOfBucketsFits(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(`"algorithm":"token_bucket","capacity":2,"refill_rate":"1/d"`))
	for round, want := range []int64{1, 0} {
		for i := range 1000 {
			if a := ask(worker, request{address: client(i)}); a.remaining != want {
				t.Fatalf("round %d, client %d: got %+v, want %d left", round, i, a, want)
			}
		}
	}
	for i := range 1000 {
		if a := ask(worker, request{address: client(i)}); a.admitted() {
			t.Fatalf("client %d is admitted a third time", i)
		}
	}
	if n := host.Metrics["sluice.table.evictions"]; n != 0 {
		t.Errorf("%d live buckets were evicted", n)
	}
}

func TestWindowsOverAnHourLeaveNoMoreEntriesThanClients(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(`"algorithm":"fixed_window","limit":1,"window":"1s"`))
	const clients = 20
	others := 0 // entries that are no page: what the table itself keeps
	var bytes int
	for second := range 3600 {
		r := request{address: client(second % clients)}
		if a := ask(worker, r); !a.admitted() {
			t.Fatalf("second %d: got %+v", second, a)
		}
		if second == 0 {
			others = host.Shared.Entries() - 1
		}
		if second == clients {
			bytes = host.Shared.Bytes()
		}
		host.Clock.Advance(time.Second)
	}
	if got := host.Shared.Entries() - others; got > clients {
		t.Errorf("%d clients have left %d entries", clients, got)
	}
	if got := host.Shared.Bytes(); got > bytes {
		t.Errorf("the table has grown from %d to %d bytes", bytes, got)
	}
}
