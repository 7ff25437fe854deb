package fleettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// StartGubernator starts a Gubernator that is alone in its pool. It ends with the
// test.
func StartGubernator(t testing.TB) *Server {
	t.Helper()
	return StartGubernators(t, 1)[0]
}

// StartGubernators starts n Gubernators that are peers: each key has one owner
// among them, and any of them may be asked. They end with the test.
func StartGubernators(t testing.TB, n int) []*Server {
	t.Helper()
	peers, err := RunGubernators(t.Name(), n)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, peers...)
	return peers
}

// RunGubernators is StartGubernators for what outlives a test or is none. Whoever
// calls it calls Stop on each.
func RunGubernators(name string, n int) ([]*Server, error) {
	var peers []*Server
	var members []string
	for i := range n {
		// Peers are told apart by their IP address alone.
		addrs, err := freeAddrs(fmt.Sprintf("127.0.0.%d", 1+i), 3)
		if err != nil {
			return nil, err
		}
		s, err := newServer(name, "gubernator", addrs[0])
		if err != nil {
			return nil, err
		}
		members = append(members, addrs[2])
		s.environment = []string{
			"GUBER_GRPC_ADDRESS=" + addrs[0],
			"GUBER_HTTP_ADDRESS=" + addrs[1],
			"GUBER_PEER_DISCOVERY_TYPE=member-list",
			"GUBER_MEMBERLIST_NODE_NAME=" + addrs[0],
			"GUBER_MEMBERLIST_ADDRESS=" + addrs[2],
			"GUBER_MEMBERLIST_BIND_ADDRESS=" + addrs[2],
			"OTEL_TRACES_EXPORTER=none",
		}
		peers = append(peers, s)
	}
	for i, s := range peers {
		// Peers come one by one, since one that meets another while that is starting
		// may learn nothing but its name. A peer that is alone meets itself, and
		// that last: it answers from then on, and the next one is started.
		known := append(slices.Delete(slices.Clone(members), i, i+1), members[i])
		s.environment = append(s.environment, "GUBER_MEMBERLIST_KNOWN_NODES="+strings.Join(known, ","))
		s.answers = func(ctx context.Context) error { return poolAnswers(ctx, s, peers) }
	}
	return peers, run(peers...)
}

// poolAnswers asks a peer for many keys, and if all peers are active, each of them:
// it is one pool only when each passes on what belongs to any other.
func poolAnswers(ctx context.Context, s *Server, peers []*Server) error {
	asked := peers
	for _, p := range peers {
		if !p.active() {
			asked = []*Server{s}
		}
	}
	for _, p := range asked {
		owners := map[string]bool{}
		for i := range 64 {
			answer, err := askGubernator(ctx, p.addr, Bucket{Name: "ready", Key: SpreadKey(i), Capacity: 1, Duration: time.Hour}, 0)
			if err != nil && len(asked) == len(peers) {
				return err
			}
			var status *StatusError
			if err != nil && !errors.As(err, &status) && !errors.Is(err, errPeer) {
				return err
			}
			owners[answer.owner] = true
		}
		if len(asked) == len(peers) && len(owners) != len(peers) {
			return fmt.Errorf("%s knows %d of %d peers", p.addr, len(owners), len(peers))
		}
	}
	return nil
}

// SpreadKey returns a key for each number, such that 64 of them have owners among
// all of a few peers. Gubernator's hash (FNV) puts keys that differ only in their
// last letters beside one another, and so with the same owner.
func SpreadKey(i int) string { return fmt.Sprintf("%d of several keys", i) }

// Bucket is a limit of Gubernator's LEAKY_BUCKET: it takes Capacity hits at once,
// and has room for as many again after Duration, little by little.
type Bucket struct {
	Name, Key string
	Capacity  int
	Duration  time.Duration // in whole milliseconds
}

// AskGubernator asks a peer at addr to count hits against a bucket; 0 is a look.
// An error that the peer answers with, as when the key's owner is down, is an
// error here too.
func AskGubernator(ctx context.Context, addr string, b Bucket, hits int) (Decision, error) {
	answer, err := askGubernator(ctx, addr, b, hits)
	return answer.Decision, err
}

type gubernatorAnswer struct {
	Decision
	owner string // the address of the peer that it was passed on to; "" for none
}

// errPeer is the kind of error that a peer puts into an answer.
var errPeer = errors.New("gubernator answers with an error")

const leakyBucket = 1

func askGubernator(ctx context.Context, addr string, b Bucket, hits int) (gubernatorAnswer, error) {
	var limit, request message
	limit = limit.text(1, b.Name).text(2, b.Key).number(3, hits).number(4, b.Capacity).
		number(5, int(b.Duration.Milliseconds())).number(6, leakyBucket).number(8, b.Capacity)
	request = request.text(1, string(limit))
	answer, err := Call(ctx, addr, "/pb.gubernator.V1/GetRateLimits", request)
	if err != nil {
		return gubernatorAnswer{}, err
	}
	fields, err := parse(answer)
	if err != nil {
		return gubernatorAnswer{}, err
	}
	response, err := parse(fields.last(1).bytes)
	if err != nil {
		return gubernatorAnswer{}, err
	}
	if text := response.last(5).bytes; len(text) > 0 {
		return gubernatorAnswer{}, fmt.Errorf("%w: %s", errPeer, text)
	}
	owner, err := owner(response)
	return gubernatorAnswer{
		Decision: Decision{
			Admitted:  response.last(1).number == 0,
			Limit:     int(response.last(2).number),
			Remaining: int(response.last(3).number),
		},
		owner: owner,
	}, err
}

// owner finds the entry "owner" of a response's metadata.
func owner(response fields) (string, error) {
	for _, f := range response {
		if f.tag != 6 {
			continue
		}
		entry, err := parse(f.bytes)
		if err != nil {
			return "", err
		}
		if string(entry.last(1).bytes) == "owner" {
			return string(entry.last(2).bytes), nil
		}
	}
	return "", nil
}
