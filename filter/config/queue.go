package config

import (
	"errors"
	"slices"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

const leakyBucket = "leaky_bucket"

// The modes of a leaky bucket.
const (
	modeQueue = "queue"
	modeMeter = "meter"
)

var modeValue = oneOf(choice[string]{modeQueue, modeQueue}, choice[string]{modeMeter, modeMeter})

// longestWait leaves a waiting request a minute of the five after which Envoy
// ends a stream that is idle.
const longestWait = 4 * time.Minute

var maxWaitValue = stringAs(`a duration such as "30s"`, func(s string) (*time.Duration, error) {
	wait, err := algorithms.ParseDuration(s, 0, algorithms.Forever)
	if err == nil && wait > longestWait {
		err = errors.New("want a duration from 0s to 4m: Envoy's stream_idle_timeout, 5m by default, ends a longer wait")
	}
	return &wait, err
}).as(patternSchema("^(" + durationPattern + ")$"))

// buildLeakyBucket builds a leaky bucket in its mode. Where the document does not
// say how long a queue's requests wait at most, it is the time in which a full
// queue empties, or longestWait if that is shorter.
func buildLeakyBucket(d *limitDraft) (limiter algorithms.Limiter, shape string, err error) {
	if d.mode == modeMeter {
		limiter, err = algorithms.NewLeakyMeter(d.capacity, d.leakRate)
	} else {
		wait := min(d.leakRate.TimeFor(d.capacity), longestWait)
		if d.maxWait != nil {
			wait = *d.maxWait
		}
		limiter, err = algorithms.NewLeakyQueue(d.capacity, d.leakRate, wait)
	}
	return limiter, d.Algorithm + "/" + d.mode, err
}

// checkMode checks that the leaky bucket n, or an override of one, has nothing
// that its mode has not. known is false where n has mistakes, of which its mode may
// be one.
func (d *limitDraft) checkMode(r *reader, n *node, known bool) bool {
	before := r.count()
	if wait := n.member("max_wait"); d.mode == modeMeter && wait != nil {
		r.mistake(wait, `belongs to the mode "queue", and in "meter" nobody waits: leave it out`)
	}
	if mode := n.member("mode"); d.mode == modeQueue && (known || mode != nil && mode.text == modeQueue) {
		for _, name := range []string{"charge", "count_status"} {
			if child := n.member(name); child != nil {
				r.mistake(child, `can't be had with "leaky_bucket" in the mode "queue", where those behind have been told when to leave: want "mode": "meter", or leave it out`)
			}
		}
	}
	return r.count() == before
}

// queuesOf are the queues among the limits that a list names: the nodes of their
// names.
func queuesOf(c *Config, uses []Use, nodes []*node) []*node {
	var queues []*node
	for i, u := range uses {
		if c.Limits[u.Limit].Queue {
			queues = append(queues, nodes[i])
		}
	}
	return queues
}

// alwaysQueue says which queue applies to all requests by this config, "" if none
// does.
func (c *Config) alwaysQueue() string {
	for _, u := range c.Always {
		if c.Limits[u.Limit].Queue {
			return quote(c.Limits[u.Limit].Name)
		}
	}
	return ""
}

// checkQueues notes each queue that a request would meet besides another. One that
// a rule and "always" name is one. plugins is the alwaysQueue of the plugin's
// config, where the document is a route's.
func (r *reader) checkQueues(plugins string) {
	r.checkQueuesOfList(r.alwaysQueues, "")
	var besides string
	switch {
	case plugins != "":
		besides = plugins + ` in the plugin's "always"`
	case len(r.alwaysQueues) > 0:
		besides = quote(r.alwaysQueues[0].text) + ` in "always"`
	}
	for _, queues := range r.ruleQueues {
		r.checkQueuesOfList(slices.DeleteFunc(queues, r.isAlwaysQueue), besides)
	}
}

func (r *reader) isAlwaysQueue(n *node) bool {
	return slices.ContainsFunc(r.alwaysQueues, func(q *node) bool { return q.text == n.text })
}

// checkQueuesOfList notes all queues of one list but the first, and that one too
// if there is one besides.
func (r *reader) checkQueuesOfList(queues []*node, besides string) {
	for _, n := range queues {
		if besides == "" {
			besides = quote(n.text)
			continue
		}
		r.wrong(n, "a second queue besides "+besides+`, and a request waits in one at most: keep one, or want "mode": "meter" in the other`)
	}
}
