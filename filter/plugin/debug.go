package plugin

import (
	"strconv"
	"time"

	"github.com/dchest/siphash"

	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
)

// verboseFor is how long an answer about the log's level is good: whoever has
// just turned debug lines on sees them from the next request on, or nearly so.
const verboseFor = int64(100 * time.Millisecond)

// verbose says whether decisions are logged.
func (p *Plugin) verbose() bool {
	if uint64(p.now-p.asked) > uint64(verboseFor) {
		p.askLevel()
	}
	return p.logs
}

// askLevel is not inlined, as it is seldom called.
//
//go:noinline
func (p *Plugin) askLevel() { p.asked, p.logs = p.now, host.Logs(host.Debug) }

// logDecision writes a line for each limit that had a part in a decision.
func (p *Plugin) logDecision(o *policy.Outcome) {
	admitted := o.Verdict == policy.Admitted || o.Verdict == policy.Unlimited
	for i := range o.Rulings {
		g := &o.Rulings[i]
		word := rulingWord(g, admitted)
		line := append([]byte("sluice: "), word...)
		line = append(line, ' ')
		line = g.Limit.AppendReadable(line, &p.request, p.secretHash)
		if !g.Failed && !g.Missing && word != uncharged {
			line = append(line, ", "...)
			line = strconv.AppendInt(line, g.Decision.Remaining, 10)
			line = append(line, " of "...)
			line = strconv.AppendInt(line, g.Decision.Limit, 10)
			line = append(line, " left"...)
		}
		if word == delayed {
			line = append(line, ", waits "...)
			line = append(line, delay(g)...)
		}
		if g.Refuses() && !g.Decision.Never {
			line = append(line, ", retry after "...)
			line = append(line, milliseconds(g.Decision.RetryAfter)...)
		}
		host.Log(host.Debug, string(line))
	}
}

// uncharged is the word for a limit that would admit a request which is refused
// all the same.
const uncharged = "uncharged"

// delayed is the word for a queue in which the request waits.
const delayed = "delayed"

func rulingWord(g *policy.Ruling, admitted bool) string {
	switch {
	case g.Failed:
		return "error"
	case g.Refuses() && g.Shadow:
		return "shadow"
	case g.Refuses():
		return "refused"
	case !admitted:
		return uncharged
	case g.Waits() > 0:
		return delayed
	default:
		return "allowed"
	}
}

// secretHash stands for a secret in the log. It is keyed with a secret of the
// process, so that nobody who reads the log can try out values.
func (p *Plugin) secretHash(secret []byte) uint64 {
	key := p.table.Seed("log")
	return siphash.Hash(key[0], key[1], secret)
}
