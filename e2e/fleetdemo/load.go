package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// result is what became of the requests to one Envoy, or to all.
type result struct {
	requests, admitted, refused int
	calls, callErrors           int // to the service
}

func (r result) plus(other result) result {
	return result{
		requests:   r.requests + other.requests,
		admitted:   r.admitted + other.admitted,
		refused:    r.refused + other.refused,
		calls:      r.calls + other.calls,
		callErrors: r.callErrors + other.callErrors,
	}
}

// total is the sum over all Envoys.
func total(results []result) (sum result) {
	for _, r := range results {
		sum = sum.plus(r)
	}
	return sum
}

// send sends requests of one client to all Envoys at the same time, to each as
// many as loads says, and returns what became of them.
func (f *fleet) send(ctx context.Context, w way, client string, loads ...int) ([]result, error) {
	var (
		results = make([]result, len(f.envoys))
		errs    = make([]error, len(f.envoys))
		done    sync.WaitGroup
	)
	for i, e := range f.envoys {
		done.Go(func() { results[i], errs[i] = sendTo(e, w, client, loads[i]) })
	}
	done.Wait()
	errs = append(errs, ctx.Err())
	return results, errors.Join(errs...)
}

// sendTo sends n requests of one client to one Envoy.
func sendTo(e *envoytest.Envoy, w way, client string, n int) (result, error) {
	addr, err := e.ListenerAddr(w.name)
	if err != nil {
		return result{}, err
	}
	before, err := calls(e, w)
	if err != nil {
		return result{}, err
	}
	tally, err := envoytest.Flood(addr, n, func(int) string { return "x-client: " + client })
	if err != nil {
		return result{}, err
	}
	r := result{requests: n, admitted: tally[http.StatusOK], refused: tally[http.StatusTooManyRequests]}
	if r.admitted+r.refused != n {
		return result{}, fmt.Errorf("answers by status are %v, want only 200 and 429", tally)
	}
	after, err := calls(e, w)
	r.calls, r.callErrors = after.calls-before.calls, after.callErrors-before.callErrors
	return r, err
}

// calls returns how many calls an Envoy has made so far for a limit.
func calls(e *envoytest.Envoy, w way) (result, error) {
	prefix := "wasmcustom.sluice.limit." + w.name
	stats, err := e.CurrentStats("^" + prefix + "\\.call")
	return result{calls: int(stats[prefix+".calls"]), callErrors: int(stats[prefix+".call_errors"])}, err
}
