package plugin

import (
	"bytes"
	"strconv"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/field"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/response"
)

// Several instances of the filter may stand in one chain, in one VM or in
// several. They know each other by filter state, which no upstream can write.
const (
	// stateProperty is the property, and with "wasm." in front the filter state,
	// in which instances say what they decided, for access logs: each appends
	// after a comma.
	stateProperty = "sluice"
	// toldProperty is where an instance that is not the first says, on the way
	// back, what the response tells of limits. Nobody needs to hear it of the
	// first, which is the last on the way back.
	toldProperty = "sluice.told"
	// toldRefusal is the value of toldProperty for a refusal, which nobody changes.
	toldRefusal = "refused"
)

var allowed = []byte("allowed")

// publish writes a decision into filter state. inner says that another instance
// has decided before.
func (p *Plugin) publish(o *policy.Outcome, ordinary bool) (inner bool) {
	before, _ := host.Property(stateProperty)
	if !ordinary || len(before) > 0 {
		return p.append(o, before)
	}
	host.SetProperty(stateProperty, allowed)
	return false
}

// append appends a decision to what other instances have said before.
func (p *Plugin) append(o *policy.Outcome, before []byte) (inner bool) {
	text := append(p.text[:0], before...)
	text = appendDecision(text, o)
	p.text = text
	host.SetProperty(stateProperty, text)
	return len(before) > 0
}

// appendDecision appends what was decided: first the reported limit, then every
// other one that has something to say.
func appendDecision(text []byte, o *policy.Outcome) []byte {
	start := len(text)
	switch o.Verdict {
	case policy.Admitted:
		if queue := o.Waiting(); queue != nil {
			text = appendItem(text, "delayed:", queue.Limit)
			text = append(append(text, ':'), delay(queue)...)
		} else {
			text = appendItem(text, "allowed", nil)
		}
	case policy.Refused, policy.MissingKey:
		text = appendItem(text, "refused:", o.Limit)
	}
	for i := range o.Rulings {
		switch g := &o.Rulings[i]; {
		case g.Failed:
			text = appendItem(text, "error:", g.Limit)
		case !g.Refuses() || g.Limit == o.Limit:
		case g.Shadow:
			text = appendItem(text, "shadow:", g.Limit)
		default:
			text = appendItem(text, "refused:", g.Limit)
		}
	}
	if len(text) == start { // nothing but limits in shadow, which admit
		text = appendItem(text, "allowed", nil)
	}
	return text
}

// delay is how long a request has to wait.
func delay(queue *policy.Ruling) string { return milliseconds(queue.Waits()) }

// milliseconds is a duration in whole milliseconds, rounded up.
func milliseconds(d time.Duration) string {
	return (min(d, algorithms.Forever-time.Millisecond) + time.Millisecond - 1).Truncate(time.Millisecond).String()
}

func appendItem(text []byte, what string, l *policy.Limit) []byte {
	if len(text) > 0 {
		text = append(text, ',')
	}
	text = append(text, what...)
	if l != nil {
		text = append(text, l.Name...)
	}
	return text
}

// told is what another instance has put on a response.
type told struct {
	refusal          bool
	families         config.HeaderFamilies
	remaining, limit int64
}

// parseTold reads what an instance behind this one has told.
func parseTold(text []byte) (t told, ok bool) {
	if string(text) == toldRefusal {
		return told{refusal: true}, true
	}
	families, rest, _ := bytes.Cut(text, []byte{'/'})
	remaining, limit, _ := bytes.Cut(rest, []byte{'/'})
	f, _ := field.Whole(families)
	t.families = config.HeaderFamilies(f)
	t.remaining, _ = field.Whole(remaining)
	t.limit, ok = field.Whole(limit)
	return t, ok
}

// tighterThan says whether a smaller share is left of this instance's limit than
// of the other's.
func (s *stream) tighterThan(t told) bool {
	return !t.refusal && response.IsSmaller(s.remaining, s.limit, t.remaining, t.limit)
}

// tellOthers leaves word of what the response tells.
func (s *stream) tellOthers() {
	text := strconv.AppendInt(nil, int64(s.families), 10)
	text = strconv.AppendInt(append(text, '/'), s.remaining, 10)
	text = strconv.AppendInt(append(text, '/'), s.limit, 10)
	host.SetProperty(toldProperty, text)
}
