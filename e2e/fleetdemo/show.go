package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// bound is what a sum has to lie in.
type bound struct{ least, most int }

var exactly = bound{limit, limit}

// leased is the bound for so many Envoys, as algorithms.Lease has it: each may have
// admitted a lease's worth on credit that the service did not cover, or hold two
// unspent, and a refusal by the rate limit server may spend almost one more.
func leased(envoys int) bound {
	return bound{limit - (2*envoys+1)*largest + 1, limit + envoys*largest}
}

// show starts everything, shows everything, and ends everything.
func show(ctx context.Context, out io.Writer) (err error) {
	f := &fleet{}
	defer func() { f.end(err != nil) }()
	fmt.Fprintf(out, "Starting %d Envoys of %d workers, Envoy's rate limit server on Valkey, and 2 Gubernators\n", envoys, workers)
	if err := f.start(); err != nil {
		return err
	}
	started := time.Now()
	for i, s := range []struct {
		way      way
		title    string
		sentence string
		bound    bound
	}{
		{rlsStrict, "Envoy's rate limit server, strict", "It is asked about each request, which waits for the answer.", exactly},
		{rlsLease, "Envoy's rate limit server, lease", "Each Envoy takes units ahead of need, at most 2 % of the limit. No request waits.", leased(envoys)},
		{gubernatorStrict, "Two Gubernators, strict", "Any of them is asked; one has the client's bucket.", exactly},
		{gubernatorLease, "Two Gubernators, lease", "As table 2.", leased(envoys)},
	} {
		fmt.Fprintf(out, "\n%d. %s\n%s\n", i+1, s.title, s.sentence)
		if err := f.share(ctx, out, s.way, s.bound); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	fmt.Fprint(out, "\n5. Envoy 3 is killed\nIt takes nothing along but what it holds of a lease.\n")
	if err := f.loseAnEnvoy(ctx, out); err != nil {
		return fmt.Errorf("an Envoy that is killed: %w", err)
	}
	fmt.Fprint(out, "\n6. The rate limit server is killed\nBy \"on_failure\": \"local\" each Envoy enforces the full limit by itself.\n")
	if err := f.loseTheServer(ctx, out); err != nil {
		return fmt.Errorf("a server that is killed: %w", err)
	}
	fmt.Fprintf(out, "\nAll went as promised, in %.0f s.\n", time.Since(started).Seconds())
	return nil
}

// share sends twice the limit to Envoys that have different loads.
func (f *fleet) share(ctx context.Context, out io.Writer, w way, b bound) error {
	results, err := f.send(ctx, w, "shares", limit, limit*2/3, limit/3)
	if err != nil {
		return err
	}
	table(out, results, b)
	return b.check(total(results).admitted)
}

// loseAnEnvoy kills an Envoy when half of the limit is used.
func (f *fleet) loseAnEnvoy(ctx context.Context, out io.Writer) error {
	ways := []struct {
		way
		bound
	}{{rlsStrict, exactly}, {rlsLease, leased(envoys)}}
	before := make([][]result, len(ways))
	for i, w := range ways {
		var err error
		if before[i], err = f.send(ctx, w.way, "loses", limit/6, limit/6, limit/6); err != nil {
			return err
		}
	}
	f.killLastEnvoy()
	for i, w := range ways {
		after, err := f.send(ctx, w.way, "loses", limit, limit)
		if err != nil {
			return err
		}
		for n, r := range after {
			before[i][n] = before[i][n].plus(r)
		}
		fmt.Fprintf(out, "\n  %s", w.mode)
		table(out, before[i], w.bound)
		if err := w.check(total(before[i]).admitted); err != nil {
			return fmt.Errorf("%s: %w", w.mode, err)
		}
	}
	return nil
}

// loseTheServer kills the rate limit server and starts it again. Valkey stays.
func (f *fleet) loseTheServer(ctx context.Context, out io.Writer) error {
	f.rateLimit.Kill()
	alone, err := f.send(ctx, rlsStrict, "alone", limit*4/3, limit*4/3)
	if err != nil {
		return err
	}
	table(out, alone, bound{2 * limit, 2 * limit}) // two are left
	for i, r := range alone {
		if err := exactly.check(r.admitted); err != nil {
			return fmt.Errorf("alone, Envoy %d: %w", i+1, err)
		}
	}
	others, err := f.send(ctx, gubernatorStrict, "others", limit, limit)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\n  Meanwhile Gubernator's limit is that of the fleet.")
	table(out, others, exactly)
	if err := exactly.check(total(others).admitted); err != nil {
		return fmt.Errorf("the limit that Gubernator counts: %w", err)
	}
	if err := f.rateLimit.Restart(); err != nil {
		return err
	}
	return f.comeBack(ctx, out)
}

// comeBack waits until all workers ask the server again. Whose limit was spent
// before it was killed is refused.
func (f *fleet) comeBack(ctx context.Context, out io.Writer) error {
	const each = 64 // to every worker of an Envoy
	began := time.Now()
	var results []result
	var err error
	back := envoytest.Await(func() bool {
		results, err = f.send(ctx, rlsStrict, "shares", each, each)
		sum := total(results)
		return err != nil || sum.calls == sum.requests && sum.callErrors == 0
	})
	if err != nil {
		return err
	}
	if !back {
		return errors.New("the Envoys do not ask it again")
	}
	fmt.Fprintf(out, "\n  The server is back, and %.1f s later all workers ask it again. Valkey still knows the client of table 1.", time.Since(began).Seconds())
	none := bound{}
	table(out, results, none)
	return none.check(total(results).admitted)
}

// check says what is wrong with a sum.
func (b bound) check(sum int) error {
	if sum < b.least || sum > b.most {
		return fmt.Errorf("%d requests were admitted, want %v", sum, b)
	}
	return nil
}

func (b bound) String() string {
	if b.least == b.most {
		return fmt.Sprint(b.most)
	}
	return fmt.Sprintf("%d to %d", b.least, b.most)
}

// table prints a row for each Envoy and one for their sum, with what it has to be.
func table(out io.Writer, results []result, b bound) {
	row := func(name string, r result, more string) {
		fmt.Fprintf(out, "  %-8s  %8d  %8d  %8d  %8d%s\n", name, r.requests, r.admitted, r.refused, r.calls, more)
	}
	fmt.Fprintf(out, "\n  %-8s  %8s  %8s  %8s  %8s\n", "", "requests", "admitted", "refused", "calls")
	for i, r := range results {
		row(fmt.Sprint("Envoy ", i+1), r, "")
	}
	sum := total(results)
	verdict := "as promised"
	if b.check(sum.admitted) != nil {
		verdict = "WRONG"
	}
	row("sum", sum, fmt.Sprintf("  limit %d, promised %v: %s", limit, b, verdict))
}
