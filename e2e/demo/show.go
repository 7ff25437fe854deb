package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-proxy/sluice/e2e/demo/backoff"
)

// show runs the sections one after another, against Envoy's listener. It fails at
// the first that does not go as promised.
func show(ctx context.Context, listener string, out *timeline) error {
	one, err := newClient("127.0.0.1", listener)
	if err != nil {
		return err
	}
	two, err := newClient("127.0.0.2", listener)
	if err != nil {
		out.Note("127.0.0.2 cannot be a source address on this system: there is one client only.")
	}
	if err := classic(ctx, one, two, out); err != nil {
		return err
	}
	if err := strictAndGenerous(ctx, one, out); err != nil {
		return err
	}
	if err := daily(ctx, one, out); err != nil {
		return err
	}
	if err := waiting(ctx, one, out); err != nil {
		return err
	}
	// The second client's bucket is full again by now. The first would get through
	// as well, after longer waits.
	return backingOff(ctx, cmp.Or(two, one), out)
}

// classic shows 5 at once and one per second after that, for each address. two is
// nil where there is no second address.
func classic(ctx context.Context, one, two *client, out *timeline) error {
	out.Section("1. The classic limit",
		"Each address has 5 requests at once, and one per second after that. 8 come at once:")
	began := time.Now()
	answers := one.atOnce(ctx, 8, "GET", "/classic")
	out.Answers(answers...)
	// What the bucket gained meanwhile may have been used as well. That is nothing,
	// unless the machine stood still for a second.
	if err := expect("8 requests at once", answers, 5, 5+int(time.Since(began).Seconds())); err != nil {
		return err
	}
	if err := showBody(answers[7], out); err != nil {
		return err
	}

	if two != nil {
		out.Note("Another address has a bucket of its own:")
		other := two.send(ctx, "GET", "/classic")
		out.Answers(other)
		if left := other.number("RateLimit-Remaining"); !other.admitted() || left != 4 {
			return fmt.Errorf("the other address got %d with %d left, want 200 with 4 left", other.status, left)
		}
	}

	out.Note("The first address waits as long as Retry-After says and sends 2 at once, three times:")
	for range 3 {
		wait, ok := backoff.RetryAfter(answers[len(answers)-1].header, time.Now())
		if !ok {
			wait = time.Second // a second request was admitted, on a slow machine
		}
		if err := backoff.Sleep(ctx, wait); err != nil {
			return err
		}
		pair := one.atOnce(ctx, 2, "GET", "/classic")
		out.Answers(pair...)
		if err := expect("2 requests after Retry-After", pair, 1, 2); err != nil {
			return err
		}
		answers = append(answers, pair...)
	}
	return expect("14 requests in all", answers, 8, 5+int(time.Since(began).Seconds()))
}

// strictAndGenerous shows that limits of one client are apart from each other.
func strictAndGenerous(ctx context.Context, one *client, out *timeline) error {
	out.Section("2. A strict login beside a generous read",
		"One address tries 20 passwords and reads 100 articles, all at once:")
	began := time.Now()
	var logins, reads []answer
	var both sync.WaitGroup
	both.Go(func() { logins = one.atOnce(ctx, 20, "POST", "/login") })
	both.Go(func() { reads = one.atOnce(ctx, 100, "GET", "/articles") })
	both.Wait()
	out.Runs(logins)
	out.Runs(reads)
	return errors.Join(
		expect("20 logins at once", logins, 3, 3+int(time.Since(began).Seconds()/20)),
		expect("100 reads at once", reads, 100, 100))
}

// daily shows a window that ends at midnight.
func daily(ctx context.Context, one *client, out *timeline) error {
	out.Section("3. A daily window",
		"Each address has 10 reports per day. The 11th has to wait until midnight UTC:")
	// Midnight in the middle of the section would begin a new window.
	if left := time.Until(midnight(time.Now())); left < 5*time.Second {
		out.Note("Midnight is in %.1f seconds: wait for the new day.", left.Seconds())
		if err := backoff.Sleep(ctx, left); err != nil {
			return err
		}
	}
	reports := make([]answer, 12)
	for i := range reports {
		reports[i] = one.send(ctx, "GET", "/report")
	}
	came := time.Now()
	out.Runs(reports)
	if err := errors.Join(expect("the first 10 reports", reports[:10], 10, 10),
		expect("2 more reports", reports[10:], 0, 0)); err != nil {
		return err
	}
	// Retry-After counts from some moment between sent and came, in whole seconds,
	// rounded up.
	last := reports[11]
	wait, ok := backoff.RetryAfter(last.header, came)
	end := midnight(last.sent)
	if !ok || came.Add(wait).Before(end) || !last.sent.Add(wait).Before(end.Add(time.Second)) {
		return fmt.Errorf("Retry-After: %s at %s does not end at midnight UTC",
			last.header.Get("Retry-After"), came.UTC().Format(time.TimeOnly))
	}
	out.Note("In %d seconds it will be %s.", last.number("Retry-After"),
		came.Add(wait).UTC().Round(time.Minute).Format("15:04 UTC on 2 January"))
	return nil
}

// midnight returns when the UTC day of t ends.
func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// The queue that envoy/demo.yaml has for /export.
const (
	exportCapacity = 10
	exportInterval = time.Second / 2
)

// waiting shows a burst that leaves evenly.
func waiting(ctx context.Context, one *client, out *timeline) error {
	out.QueueSection("4. A queue",
		"Each address has one export every half second. Up to 10 more wait for their turn, and leave in\n"+
			"the order in which they came; the upstream answers at once. 13 come at once:")
	began := time.Now()
	exports := one.atOnce(ctx, 13, "GET", "/export")
	out.Waits(exports...)
	// One more waits for each place that was free again before the last of them
	// was sent. That is none, unless the machine stood still for half a second.
	var last time.Time
	for _, a := range exports {
		if a.sent.After(last) {
			last = a.sent
		}
	}
	freed := int(last.Sub(began) / exportInterval)
	if err := expect("13 exports at once", exports, 1+exportCapacity, 1+exportCapacity+freed); err != nil {
		return err
	}
	leaving := exports[:admitted(exports)]
	for i, a := range leaving {
		if err := checkDeparture(i, a.sent.Add(a.took).Sub(began)); err != nil {
			return err
		}
	}
	for _, a := range exports[len(leaving):] {
		if a.number("Retry-After") < 1 {
			return fmt.Errorf("an export was refused with Retry-After: %q, want when a place is free", a.header.Get("Retry-After"))
		}
	}
	out.Note("Of the %d that were admitted one left every %v.", len(leaving), exportInterval)
	return nil
}

// checkDeparture checks when the i-th export in line left, from the moment on at
// which they came. None may leave before its turn; some time is for machines that
// are slow.
func checkDeparture(i int, left time.Duration) error {
	const slow = 2 * time.Second
	turn := time.Duration(i) * exportInterval
	if left < turn || left > turn+slow {
		return fmt.Errorf("export %d left after %v, want %v", i+1, left.Round(time.Millisecond), turn)
	}
	return nil
}

// backingOff shows that a client which waits as it is told gets everything done.
func backingOff(ctx context.Context, c *client, out *timeline) error {
	out.Section("5. A client that backs off",
		"8 requests meet the classic limit at once. Refused ones come again after Retry-After, until\n"+
			"they are admitted; rows are in the order in which the answers came:")
	var waited [8]time.Duration
	var errs [8]error
	var done sync.WaitGroup
	for i := range waited {
		polite := backoff.Client{
			Attempts: 10,
			Base:     100 * time.Millisecond,
			Cap:      time.Second,
			OnWait:   func(wait time.Duration) { waited[i] += wait },
			Send: func(request *http.Request) (*http.Response, error) {
				a := answer{sent: time.Now(), client: c.address, request: "GET /classic"}
				response, err := c.http.Do(request)
				if err == nil {
					a.status, a.header = response.StatusCode, response.Header
					out.Answers(a)
				}
				return response, err
			},
		}
		done.Go(func() {
			response, err := polite.Do(c.newRequest(ctx, "GET", "/classic"))
			if err == nil && response.StatusCode != http.StatusOK {
				err = fmt.Errorf("a request that backs off got %s in the end, want it admitted", response.Status)
			}
			errs[i] = err
		})
	}
	done.Wait()
	slices.Sort(waited[:])
	if waited[7] == 0 {
		errs[0] = cmp.Or(errs[0], errors.New("none of 8 requests at once had to wait"))
	}
	out.Note("Waits of the 8 requests: %s.", strings.Trim(fmt.Sprint(waited), "[]"))
	return cmp.Or(errs[:]...)
}

// expect checks how many requests were admitted: from least to most.
func expect(what string, answers []answer, least, most int) error {
	if n := admitted(answers); n < least || n > most {
		return fmt.Errorf("of %s %d were admitted, want %d", what, n, least)
	}
	return nil
}

// showBody prints the body of a refusal, and checks that it says what the header
// says.
func showBody(refusal answer, out *timeline) error {
	var body struct {
		Error      string
		RetryAfter int
	}
	var indented bytes.Buffer
	err := cmp.Or(json.Unmarshal([]byte(refusal.body), &body),
		json.Indent(&indented, []byte(refusal.body), "  ", "  "))
	if err != nil || body.Error != "rate_limit_exceeded" || body.RetryAfter != refusal.number("Retry-After") {
		return fmt.Errorf("a refusal with Retry-After: %s has the body %q",
			refusal.header.Get("Retry-After"), refusal.body)
	}
	out.Note("The body of a refusal:\n  %s", &indented)
	return nil
}
