package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// BenchmarkSpacing shows how evenly a queue's requests leave, as the upstream
// sees them arrive: over several workers, at 50 a second, for 30 s. What it says
// of spacing is worth something on a quiet machine only, and a virtual one whose
// processors halt between two departures is not: so they are kept awake.
// ms-timer-p99 is what a plain timer of the same period came to meanwhile.
func BenchmarkSpacing(b *testing.B) {
	const (
		rate    = 50
		lasting = 30 * time.Second
		clients = 64 // each with one request at a time, so that the line never ends
	)
	for _, workers := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("workers-%d", workers), func(b *testing.B) {
			upstream := envoytest.NewUpstream(b)
			envoy := envoytest.Start(b, envoytest.Options{
				Workers:  workers,
				Upstream: upstream,
				Listeners: []envoytest.Listener{{Filters: filters{envoytest.Wasm{
					Module: envoytest.Module(b, "sluice.wasm"),
					Config: fmt.Sprintf(`{
						"limits": {"spaced": {"algorithm": "leaky_bucket", "capacity": %d, "leak_rate": "%d/s", "key": []}},
						"rules":  [{"limits": ["spaced"]}]
					}`, 2*clients, rate),
				}.Filter()}}},
			})
			envoytest.KeepAwake(b)
			for b.Loop() {
				arrivals := upstream.Watch(fmt.Sprintf("/%d", b.N))
				timer := timeTimer(time.Second/rate, lasting)
				keepInLine(b, envoy.Addr(b, "main"), fmt.Sprintf("/%d", b.N), clients, lasting)
				departures := []time.Time{}
				for _, arrival := range arrivals.All() {
					departures = append(departures, arrival.At)
				}
				b.ReportMetric(0, "ns/op") // which would be how long the load lasts
				b.ReportMetric(ms(percentile(spacings(<-timer), 99)), "ms-timer-p99")
				reportSpacing(b, departures, rate*int(lasting/time.Second))
			}
		})
	}
}

// keepInLine has each client send one request after the other for so long.
func keepInLine(b *testing.B, addr, path string, clients int, lasting time.Duration) {
	b.Helper()
	var done sync.WaitGroup
	end := time.Now().Add(lasting)
	for range clients {
		client := envoytest.NewClient(b, addr, envoytest.ClientOptions{HTTP2: true})
		done.Go(func() {
			for time.Now().Before(end) {
				if response, err := client.Send("GET", path); err != nil || response.Status != 200 {
					b.Errorf("got status %d (error: %v), want 200", response.Status, err)
					return
				}
			}
		})
	}
	done.Wait()
}

// timeTimer has a timer go off every period for so long, and then tells when it
// has.
func timeTimer(period, lasting time.Duration) <-chan []time.Time {
	told := make(chan []time.Time, 1)
	go func() {
		var all []time.Time
		start := time.Now()
		for due := start; due.Sub(start) < lasting; due = due.Add(period) {
			time.Sleep(time.Until(due))
			all = append(all, time.Now())
		}
		told <- all
	}()
	return told
}

// reportSpacing reports the rate and the spacing of the first departures.
func reportSpacing(b *testing.B, departures []time.Time, first int) {
	b.Helper()
	if len(departures) <= first/2 {
		b.Fatalf("%d requests have left, want about %d", len(departures), first)
	}
	departures = departures[:min(first, len(departures))]
	took := departures[len(departures)-1].Sub(departures[0])
	b.ReportMetric(float64(len(departures)-1)/took.Seconds(), "departures/s")
	all := spacings(departures)
	for _, percent := range []int{1, 50, 99, 100} {
		b.ReportMetric(ms(percentile(all, percent)), fmt.Sprintf("ms-spacing-p%d", percent))
	}
}

// spacings returns the times between one and the next, the shortest first.
func spacings(moments []time.Time) []time.Duration {
	var all []time.Duration
	for i := range moments[1:] {
		all = append(all, moments[i+1].Sub(moments[i]))
	}
	slices.Sort(all)
	return all
}

func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)-1)*percent/100]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
