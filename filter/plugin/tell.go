package plugin

import (
	"strconv"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/response"
)

// admitted keeps what the response is to say of an admission.
func (s *stream) admitted(rule *policy.Rule, o *policy.Outcome) {
	s.families = rule.Response.Families
	if s.families == 0 {
		return
	}
	d := &o.Reported.Decision
	s.told, s.refusal = true, false
	s.limit, s.remaining, s.reset = d.Limit, d.Remaining, resetOf(d)
	if s.families&config.Draft == 0 && s.lasting == nil {
		return
	}
	all, limits := shares(o)
	if s.families&config.Draft != 0 {
		s.keepDraft(all)
	}
	if s.lasting != nil {
		s.lasting.shares, s.lasting.limits = all, limits
	}
}

// resetOf is what clients are told of a decision's Reset.
func resetOf(d *algorithms.Decision) int64 {
	if d.Reset < 0 {
		return response.NoReset
	}
	return response.Seconds(d.Reset)
}

// refused keeps what the response is to say of a refusal, which passes the filter
// again after Envoy has put the route's headers on it.
func (s *stream) refused(rule *policy.Rule, r *response.Refusal) {
	s.told, s.refusal, s.families = true, true, 0
	s.retry, _ = r.RetrySeconds()
	s.sentence = r.Message()
	if r.MissingKey {
		return
	}
	s.families = rule.Response.Families
	s.limit, s.remaining, s.reset = r.Limit, r.Remaining, resetOf(&r.Decision)
	if s.families&config.Draft != 0 {
		s.keepDraft(r.Shares)
	}
}

func (s *stream) keepDraft(shares []response.Share) {
	s.policy = response.AppendDraftPolicy(s.policy[:0], shares)
	s.draft = response.AppendDraft(s.draft[:0], shares)
}

// tell puts headers on a response, in place of what the upstream or the route
// may have said. On an admitted one the instance of the smallest share tells.
func (vm *VM) tell(s *stream) {
	if s.refusal {
		vm.tellRefusal(s)
	} else if text, status := host.Property(toldProperty); status == host.OK && !s.replaces(text) {
		return
	}
	if s.families&config.RateLimit != 0 {
		vm.tellThree(s, response.LimitHeader, response.RemainingHeader, response.ResetHeader)
	}
	if s.families&config.XRateLimit != 0 {
		vm.tellThree(s, response.XLimitHeader, response.XRemainingHeader, response.XResetHeader)
	}
	if s.families&config.Draft != 0 {
		host.ReplaceResponseHeader(response.DraftPolicyHeader, s.policy)
		host.ReplaceResponseHeader(response.DraftHeader, s.draft)
	}
	if s.inner && !s.refusal {
		s.tellOthers()
	}
}

// replaces says whether the stream's limit is told of in place of what another
// instance has told, and takes off the response what would be left of that.
func (s *stream) replaces(text []byte) bool {
	another, ok := parseTold(text)
	if !ok {
		return true
	}
	if !s.tighterThan(another) {
		return false
	}
	removeFamilies(another.families &^ s.families)
	return true
}

func (vm *VM) tellRefusal(s *stream) {
	if s.retry > 0 {
		host.ReplaceResponseHeader(response.RetryAfterHeader, vm.number.text(s.retry))
	} else {
		host.RemoveResponseHeader(response.RetryAfterHeader)
	}
	// Envoy answers in gRPC's terms what was gRPC when it arrived, even if an
	// earlier filter has made something else of it: then the message is the body
	// that was meant for HTTP.
	if host.HasResponseHeader("grpc-status") {
		host.ReplaceResponseHeader("grpc-message", []byte(s.sentence))
	}
}

func (vm *VM) tellThree(s *stream, limit, remaining, reset string) {
	if vm.limit != s.limit {
		vm.limit, vm.limitText = s.limit, strconv.AppendInt(vm.limitText[:0], s.limit, 10)
	}
	host.ReplaceResponseHeader(limit, vm.limitText)
	host.ReplaceResponseHeader(remaining, vm.number.text(s.remaining))
	if s.reset == response.NoReset {
		host.RemoveResponseHeader(reset) // an upstream's would be taken for this limit's
	} else {
		host.ReplaceResponseHeader(reset, vm.number.text(s.reset))
	}
}

// removeFamilies removes the headers of another instance whose share is larger.
func removeFamilies(families config.HeaderFamilies) {
	for _, f := range []struct {
		family  config.HeaderFamilies
		headers []string
	}{
		{config.RateLimit, []string{response.LimitHeader, response.RemainingHeader, response.ResetHeader}},
		{config.XRateLimit, []string{response.XLimitHeader, response.XRemainingHeader, response.XResetHeader}},
		{config.Draft, []string{response.DraftPolicyHeader, response.DraftHeader}},
	} {
		if families&f.family == 0 {
			continue
		}
		for _, header := range f.headers {
			host.RemoveResponseHeader(header)
		}
	}
}

// decimal is room for a number's text: 20 digits, in a size whose indices need no
// check.
type decimal [32]byte

// text returns n, from 0, in decimal, good until the next call. Package strconv
// takes four times as long for it in WebAssembly, where a turn of a loop costs
// more than what is done in it: so there is one for two digits.
func (d *decimal) text(n int64) []byte {
	at := len(d) - 1
	u := uint64(n)
	for u >= 100 {
		rest := u / 100
		two := u - rest*100
		tens := two * 103 >> 10 // two/10, of numbers below 179
		d[at&31], d[(at-1)&31] = byte('0'+two-tens*10), byte('0'+tens)
		u = rest
		at -= 2
	}
	if u >= 10 {
		tens := u * 103 >> 10
		d[at&31], d[(at-1)&31] = byte('0'+u-tens*10), byte('0'+tens)
		return d[(at-1)&31:]
	}
	d[at&31] = byte('0' + u)
	return d[at&31:]
}
