package plugin

import (
	"bytes"
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/response"
)

// VM is one worker's module: its plugins and all their streams. It implements
// types.VMContext and bridge.Streams.
type VM struct {
	types.DefaultVMContext

	plugins map[uint32]*Plugin
	last    *Plugin // the one that had the last stream, for which plugins need not be asked
	streams streamTable
	number  [20]byte // scratch for a header's value

	// The limit that was written last, as text: most requests share a few.
	limit     int64
	limitText []byte
}

// New returns the VM of a worker.
func New() *VM {
	return &VM{
		plugins: map[uint32]*Plugin{},
		streams: streamTable{overflow: map[uint32]*stream{}},
	}
}

// NewPluginContext implements types.VMContext.
func (vm *VM) NewPluginContext(id uint32) types.PluginContext {
	p := &Plugin{vm: vm, id: id}
	vm.plugins[id] = p
	return p
}

// Create implements bridge.Streams.
func (vm *VM) Create(id, plugin uint32) {
	if vm.last == nil || vm.last.id != plugin {
		vm.last = vm.plugins[plugin]
	}
	if vm.last != nil {
		vm.streams.create(id, vm.last)
	}
}

// RequestHeaders implements bridge.Streams: it decides about a request.
func (vm *VM) RequestHeaders(id uint32) uint32 {
	s := vm.streams.find(id)
	if s == nil || s.plugin.policy == nil {
		return uint32(host.Continue)
	}
	p := s.plugin
	testTrap()
	if !p.attach() {
		p.metrics.add("sluice.table.errors", 1)
		return p.answer(s, p.policy.FallbackRule(), p.policy.Failed())
	}
	p.request.begin()
	rule := p.policy.Match(&p.request)
	outcome := p.policy.Decide(rule, &p.request, p)
	p.metrics.table(p.table)
	return p.answer(s, rule, outcome)
}

// RequestHeadersFailed implements bridge.Streams: after a panic the request goes
// on or is denied as the config says.
func (vm *VM) RequestHeadersFailed(id uint32) uint32 {
	s := vm.streams.find(id)
	if s == nil || s.plugin.policy == nil {
		return uint32(host.Continue)
	}
	s.plugin.metrics.add("sluice.panics", 1)
	return s.plugin.answer(s, s.plugin.policy.FallbackRule(), s.plugin.policy.Failed())
}

// ResponseHeaders implements bridge.Streams: it tells a client what it has left,
// in place of what the upstream or the route may have said. A refusal of the
// filter's own comes by here too, after Envoy has added the route's headers.
func (vm *VM) ResponseHeaders(id uint32) {
	s := vm.streams.find(id)
	if s == nil || !s.decided {
		return
	}
	s.decided = false // headers come once; trailers-only answers are headers too
	if s.refused {
		if s.retry > 0 {
			host.ReplaceResponseHeader(response.RetryAfterHeader, vm.decimal(s.retry))
		}
	} else if refusedByAnother() {
		return
	}
	if vm.limit != s.limit {
		vm.limit, vm.limitText = s.limit, strconv.AppendInt(vm.limitText[:0], s.limit, 10)
	}
	host.ReplaceResponseHeader(response.LimitHeader, vm.limitText)
	host.ReplaceResponseHeader(response.RemainingHeader, vm.decimal(s.remaining))
	host.ReplaceResponseHeader(response.ResetHeader, vm.decimal(s.reset))
}

// stateProperty is the property, and with "wasm." in front the filter state, in
// which instances tell what they decided.
const stateProperty = "sluice"

// refusedByAnother says whether this is the refusal of another instance in the
// filter chain, whose headers are its own. The header alone is no proof, since
// an upstream may send it; but where it is absent there is no more to ask.
func refusedByAnother() bool {
	if !host.HasResponseHeader(response.RateLimitedHeader) {
		return false
	}
	state, _ := host.Property(stateProperty)
	return bytes.Contains(state, []byte("refused:"))
}

// Delete implements bridge.Streams.
func (vm *VM) Delete(id uint32) bool {
	if vm.streams.remove(id) {
		return true
	}
	delete(vm.plugins, id)
	vm.last = nil
	return false
}

// decimal writes n as text that is good until the next call.
func (vm *VM) decimal(n int64) []byte {
	return strconv.AppendInt(vm.number[:0], n, 10)
}

// answer carries an outcome out and says whether the request goes on.
func (p *Plugin) answer(s *stream, rule *policy.Rule, o policy.Outcome) uint32 {
	switch o.Verdict {
	case policy.Admitted:
		s.tell(o.Decision)
		return uint32(host.Continue)
	case policy.Refused:
		s.tell(o.Decision)
		refusal := response.Refusal{Decision: *o.Decision}
		s.refused = true
		s.retry, _ = refusal.RetrySeconds()
		return p.refuse(rule, o.Limit, refusal)
	case policy.MissingKey:
		return p.refuse(rule, o.Limit, response.Refusal{MissingKey: true})
	case policy.Undecided:
		return p.deny()
	default:
		return uint32(host.Continue)
	}
}

// tell keeps what the response is to say of a decision.
func (s *stream) tell(d *algorithms.Decision) {
	s.decided, s.refused = true, false
	s.limit, s.remaining, s.reset = d.Limit, d.Remaining, response.Seconds(d.Reset)
}

// refuse answers with a refusal by a limit, as the rule asks for it.
func (p *Plugin) refuse(rule *policy.Rule, by *policy.Limit, refusal response.Refusal) uint32 {
	body := refusal.Body()
	if rule.Response.Body != nil {
		body = *rule.Response.Body
	}
	if p.request.isGRPC() {
		body = refusal.Message()
	}
	headers := host.AppendPairs(nil, refusal.Headers())
	host.SetProperty(stateProperty, []byte("refused:"+by.Name))
	return sent(host.SendLocalResponse(rule.Response.Status, by.Details, []byte(body), headers, response.GRPCResourceExhausted))
}

// deny answers a request that could not be decided.
func (p *Plugin) deny() uint32 {
	const message = "The request could not be checked against its limits."
	return sent(host.SendLocalResponse(503, "sluice_undecided", []byte(message), host.AppendPairs(nil, nil), response.GRPCUnavailable))
}

// sent says whether the request goes on after a local response. Where the host
// could not send it, pausing would leave the client waiting for ever.
func sent(status host.Status) uint32 {
	if status != host.OK {
		return uint32(host.Continue)
	}
	return uint32(host.Pause)
}
