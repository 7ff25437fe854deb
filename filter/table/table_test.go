package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/table/tabletest"
)

func open(t testing.TB, store *tabletest.Memory, maxBuckets int) *Table {
	t.Helper()
	table, ok := Open(store, "test", maxBuckets, tabletest.Random)
	if !ok {
		t.Fatal("the table did not open")
	}
	return table
}

var mono = func(d time.Duration) algorithms.Time { return algorithms.Time{Mono: int64(d)} }

// take makes one request and returns whether it was admitted.
func take(t testing.TB, table *Table, l algorithms.Limiter, key string, now algorithms.Time) bool {
	t.Helper()
	b := table.Bucket(table.Seed("limit"), []byte(key))
	for {
		var r Record
		if !table.Read(b, &r) {
			t.Fatal("the store failed")
		}
		next, d := algorithms.Decide(l, r.State, now, 1)
		if next == r.State {
			return d.Allowed
		}
		stored, ok := table.Write(b, &r, &next, &d, now.Mono)
		if !ok {
			t.Fatal("the store failed")
		}
		if stored {
			return d.Allowed
		}
	}
}

func bucketOf(t testing.TB, capacity int64, rate string) algorithms.Limiter {
	t.Helper()
	r, err := algorithms.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	l, err := algorithms.NewTokenBucket(capacity, r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestEveryClientHasItsOwnBucket(t *testing.T) {
	table, five := open(t, tabletest.New(), 1000), bucketOf(t, 5, "1/h")
	for round := range 7 {
		for client := range 500 {
			if got, want := take(t, table, five, fmt.Sprint(client), mono(0)), round < 5; got != want {
				t.Fatalf("client %d, request %d: admitted %v, want %v", client, round, got, want)
			}
		}
	}
	if table.Evicted != 0 {
		t.Errorf("%d live buckets were thrown out of a table half full", table.Evicted)
	}
}

func TestAWriteInBetweenIsNotLost(t *testing.T) {
	store := tabletest.New()
	mine, other, one := open(t, store, 1000), open(t, store, 1000), bucketOf(t, 1, "1/h")
	store.BeforeSet = func() {
		if !take(t, other, one, "client", mono(0)) {
			t.Error("the first to write was refused")
		}
	}
	if take(t, mine, one, "client", mono(0)) {
		t.Error("two requests were admitted at a limit of one")
	}
	if mine.Retries != 1 {
		t.Errorf("counted %d retries, want 1", mine.Retries)
	}
}

func TestWorkersAgreeOnOneSecret(t *testing.T) {
	store := tabletest.New()
	var second *Table
	store.BeforeSet = func() { second = open(t, store, 1000) }
	first := open(t, store, 1000)
	if first.secret != second.secret {
		t.Error("two workers that started at once hash by different secrets")
	}
	if first.secret == [2]uint64{} {
		t.Error("the secret is not random")
	}
}

// Nobody can choose keys that fall on a victim's page without the secret, which
// is another one in every process.
func TestWhereAKeyLiesDependsOnTheSecret(t *testing.T) {
	one, other := open(t, tabletest.New(), 10_000), open(t, tabletest.New(), 10_000)
	pages := one.pages
	same := 0
	for i := range 1000 {
		key := fmt.Append(nil, "client ", i)
		a, b := one.Bucket(one.Seed("limit"), key), other.Bucket(other.Seed("limit"), key)
		if a.page >= pages || b.page >= pages {
			t.Fatalf("key %d lies on page %d and %d of %d", i, a.page, b.page, pages)
		}
		if a.page == b.page {
			same++
		}
		if a.fingerprint == b.fingerprint {
			t.Fatalf("key %d has the same fingerprint under two secrets", i)
		}
	}
	// 1000 keys on 417 pages: 2.4 happen to agree, and 20 do once in 1e12 runs.
	if same > 20 {
		t.Errorf("%d of 1000 keys lie on the same page under two secrets", same)
	}
}

func TestLimitsOfOneTableShareNoBucket(t *testing.T) {
	table := open(t, tabletest.New(), 1000)
	key := []byte("client")
	if table.Bucket(table.Seed("a"), key) == table.Bucket(table.Seed("b"), key) {
		t.Error("a client has one bucket under two limits")
	}
	if again := table.Seed("a"); table.Bucket(again, key) != table.Bucket(table.Seed("a"), key) {
		t.Error("a client has two buckets under one limit")
	}
}

func TestTablesOfOtherNamespaceOrSizeAreOtherTables(t *testing.T) {
	store, one := tabletest.New(), bucketOf(t, 1, "1/h")
	for _, of := range []struct {
		namespace  string
		maxBuckets int
	}{{"a", 1000}, {"b", 1000}, {"a", 2000}, {"", 1000}} {
		table, ok := Open(store, of.namespace, of.maxBuckets, tabletest.Random)
		if !ok || !take(t, table, one, "client", mono(0)) {
			t.Errorf("%+v: the client's bucket was spent in another table", of)
		}
	}
}

func TestABucketThatIsWholeGivesItsPlaceFirst(t *testing.T) {
	store := tabletest.New()
	table, five := open(t, store, 1000), bucketOf(t, 5, "1/s")
	for i := range 100_000 {
		// Each client is whole again a second later, and so leaves nothing.
		now := mono(time.Duration(i) * 10 * time.Millisecond)
		if !take(t, table, five, fmt.Sprint("client", i), now) {
			t.Fatal("a new client was refused")
		}
	}
	if table.Evicted != 0 {
		t.Errorf("%d live buckets were thrown out, with 100 alive at a time", table.Evicted)
	}
	// 100 alive over 42 pages: a page rarely sees 20 at once.
	if got, most := store.Bytes(), 42*20*entryWords*8; got > most {
		t.Errorf("the table takes %d bytes for 100 live buckets, want at most %d", got, most)
	}
}

func TestAFloodOfMadeUpKeysDoesNotFreeASpentClient(t *testing.T) {
	store := tabletest.New()
	table, five := open(t, store, 1000), bucketOf(t, 5, "1/h")
	for range 5 {
		take(t, table, five, "spent", mono(0))
	}
	for i := range 200_000 {
		take(t, table, five, fmt.Sprint("made up", i), mono(time.Second))
	}
	if take(t, table, five, "spent", mono(2*time.Second)) {
		t.Error("the flood gave the client its bucket back")
	}
	if got := int64(store.Bytes()); got > MaxBytes(1000)+16 {
		t.Errorf("the table takes %d bytes, want at most %d", got, MaxBytes(1000))
	}
	if table.Evicted < 190_000 {
		t.Errorf("counted %d evictions of live buckets in a flood of 200,000", table.Evicted)
	}
}

func TestTheLargestShareGoesFirstThenTheSoonestWhole(t *testing.T) {
	table := open(t, tabletest.New(), 1000)
	full := make(page, pageWords)
	entry := func(n int) int { return headerWords + n*entryWords }
	for i := range pageEntries {
		full.store(entry(i), uint64(i), int64(1000+i), 10, &algorithms.State{})
	}
	full.store(entry(7), 7, 5000, 20, &algorithms.State{})
	full.store(entry(30), 30, 4000, 20, &algorithms.State{})
	if _, at, evicts := table.makeRoom(full, 0); at != entry(30) || !evicts {
		t.Errorf("took the entry at %d (evicts: %v), want number 30: the largest share, whole before 7", at, evicts)
	}
	if _, at, evicts := table.makeRoom(full, 1003); at != entry(0) || evicts {
		t.Errorf("took the entry at %d (evicts: %v), want number 0, which is whole", at, evicts)
	}
}

// The promise of max_buckets: that many live buckets fit, but for stated odds.
func TestAsManyBucketsAsPromisedFit(t *testing.T) {
	for _, maxBuckets := range []int{1000, 10_000, 100_000} {
		pages := pagesFor(maxBuckets)
		if odds := float64(pages) * poissonTail(meanEntries, pageEntries); odds > 1e-4 {
			t.Errorf("%d buckets: the odds of an eviction are %.1e", maxBuckets, odds)
		}
		table, five := open(t, tabletest.New(), maxBuckets), bucketOf(t, 5, "1/h")
		for i := range maxBuckets {
			take(t, table, five, fmt.Sprint(i), mono(0))
		}
		if table.Evicted != 0 {
			t.Errorf("%d buckets: %d were thrown out", maxBuckets, table.Evicted)
		}
	}
	if odds := float64(pagesFor(10_000_000)) * poissonTail(meanEntries, pageEntries); odds > 4e-3 {
		t.Errorf("10,000,000 buckets: the odds of an eviction are %.1e", odds)
	}
}

// poissonTail is P(X > n) for X of the Poisson distribution with the given mean.
func poissonTail(mean float64, n int) (tail float64) {
	for k := n + 1; k < n+200; k++ {
		lg, _ := math.Lgamma(float64(k + 1))
		tail += math.Exp(float64(k)*math.Log(mean) - mean - lg)
	}
	return tail
}

func TestABrokenStoreIsReported(t *testing.T) {
	store := tabletest.New()
	table := open(t, store, 1000)
	b := table.Bucket(table.Seed("limit"), []byte("client"))
	var r Record
	if !table.Read(b, &r) {
		t.Fatal("a working store failed")
	}
	store.Broken = true
	if _, ok := table.Write(b, &r, &algorithms.State{1}, &algorithms.Decision{Limit: 1}, 0); ok {
		t.Error("a failed write passed for done")
	}
	if table.Read(b, &r) {
		t.Error("a failed read passed for done")
	}
	if _, ok := Open(store, "test", 1000, tabletest.Random); ok {
		t.Error("a table opened on a store that fails")
	}
	if _, ok := Open(tabletest.New(), "test", 1000, func([]byte) bool { return false }); ok {
		t.Error("a table opened without a secret")
	}
}

func TestAPageThatIsNoneIsStartedAfresh(t *testing.T) {
	for _, size := range []int{1, 7, 16, entryWords * 8, entryWords*8 + 9, (pageWords + entryWords) * 8} {
		store, one := tabletest.New(), bucketOf(t, 1, "1/h")
		table := open(t, store, 1000)
		for page := range pagesFor(1000) {
			store.Set(table.pageKey(page), make([]byte, size), Absent)
		}
		if !take(t, table, one, "client", mono(0)) || take(t, table, one, "client", mono(0)) {
			t.Errorf("a page of %d bytes broke the limit", size)
		}
	}
}

func TestSharesAreSharesOfTheLimit(t *testing.T) {
	for _, c := range []struct {
		remaining, limit int64
		want             float64
	}{{0, 5, 0}, {4, 5, 0.8}, {5, 5, 1}, {999_999_999, 1_000_000_000, 1}, {1, 1_000_000_000, 0}} {
		got := float64(share(&algorithms.Decision{Remaining: c.remaining, Limit: c.limit})) / math.MaxUint32
		if math.Abs(got-c.want) > 1e-8 {
			t.Errorf("%d of %d: share %f, want %f", c.remaining, c.limit, got, c.want)
		}
	}
	if got := whole(5, &algorithms.Decision{Reset: algorithms.Forever}); got != math.MaxInt64 {
		t.Errorf("a bucket that is whole in 292 years is whole at %d", got)
	}
}

func BenchmarkReadAndWrite(b *testing.B) {
	store := tabletest.New()
	table, many := open(b, store, 100_000), bucketOf(b, algorithms.MaxUnits, "1000000000/s")
	seed := table.Seed("limit")
	var key [8]byte
	var r Record
	b.ReportAllocs()
	for i := range b.N {
		binary.LittleEndian.PutUint64(key[:], uint64(i%1000))
		bucket := table.Bucket(seed, key[:])
		table.Read(bucket, &r)
		next, d := algorithms.Decide(many, r.State, algorithms.Time{Mono: int64(i)}, 1)
		table.Write(bucket, &r, &next, &d, int64(i))
	}
}
