package bridge

import (
	"runtime"
	"unsafe"

	"github.com/sluice-proxy/sluice/filter/abi"
)

// sdkHost mirrors the SDK's internal interface ProxyWasmHost: the same methods,
// whose parameters have the same sizes. The SDK calls them by their place in the
// method table, which the compiler sorts by name.
type sdkHost interface {
	ProxyLog(level uint32, message *byte, size int) uint32
	ProxySetProperty(path *byte, pathSize int, value *byte, valueSize int) uint32
	ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32
	ProxySendLocalResponse(code uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpcStatus int32) uint32
	ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32
	ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32
	ProxyRegisterSharedQueue(name *byte, nameSize int, id *uint32) uint32
	ProxyResolveSharedQueue(vmID *byte, vmIDSize int, name *byte, nameSize int, id *uint32) uint32
	ProxyDequeueSharedQueue(id uint32, value **byte, valueSize *int) uint32
	ProxyEnqueueSharedQueue(id uint32, value *byte, valueSize int) uint32
	ProxyGetHeaderMapValue(kind uint32, key *byte, keySize int, value **byte, valueSize *int) uint32
	ProxyAddHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32
	ProxyReplaceHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32
	ProxyContinueStream(kind uint32) uint32
	ProxyCloseStream(kind uint32) uint32
	ProxyRemoveHeaderMapValue(kind uint32, key *byte, keySize int) uint32
	ProxyGetHeaderMapPairs(kind uint32, pairs **byte, size *int) uint32
	ProxySetHeaderMapPairs(kind uint32, pairs *byte, size int) uint32
	ProxyGetBufferBytes(kind uint32, start int, maxSize int, data **byte, size *int) uint32
	ProxySetBufferBytes(kind uint32, start int, maxSize int, data *byte, size int) uint32
	ProxyHttpCall(cluster *byte, clusterSize int, headers *byte, headersSize int, body *byte, bodySize int, trailers *byte, trailersSize int, timeout uint32, id *uint32) uint32
	ProxyCallForeignFunction(name *byte, nameSize int, argument *byte, argumentSize int, result **byte, resultSize *int) uint32
	ProxySetTickPeriodMilliseconds(period uint32) uint32
	ProxySetEffectiveContext(id uint32) uint32
	ProxyDone() uint32
	ProxyDefineMetric(kind uint32, name *byte, nameSize int, id *uint32) uint32
	ProxyIncrementMetric(id uint32, offset int64) uint32
	ProxyRecordMetric(id uint32, value uint64) uint32
	ProxyGetMetric(id uint32, value *uint64) uint32
}

// hostcalls makes the SDK's hostcalls.
type hostcalls struct{}

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// registerHost gives the SDK its host. The linker removes methods that it sees
// nobody call, and it does not see the SDK's calls, which go through an
// interface of other parameter types; so all are called here, on a path that is
// never taken but that no compiler can know to be dead.
func registerHost(h sdkHost) {
	sdkRegisterHost(h)
	if runtime.NumGoroutine() != 0 {
		return
	}
	h.ProxyLog(0, nil, 0)
	h.ProxySetProperty(nil, 0, nil, 0)
	h.ProxyGetProperty(nil, 0, nil, nil)
	h.ProxySendLocalResponse(0, nil, 0, nil, 0, nil, 0, 0)
	h.ProxyGetSharedData(nil, 0, nil, nil, nil)
	h.ProxySetSharedData(nil, 0, nil, 0, 0)
	h.ProxyRegisterSharedQueue(nil, 0, nil)
	h.ProxyResolveSharedQueue(nil, 0, nil, 0, nil)
	h.ProxyDequeueSharedQueue(0, nil, nil)
	h.ProxyEnqueueSharedQueue(0, nil, 0)
	h.ProxyGetHeaderMapValue(0, nil, 0, nil, nil)
	h.ProxyAddHeaderMapValue(0, nil, 0, nil, 0)
	h.ProxyReplaceHeaderMapValue(0, nil, 0, nil, 0)
	h.ProxyContinueStream(0)
	h.ProxyCloseStream(0)
	h.ProxyRemoveHeaderMapValue(0, nil, 0)
	h.ProxyGetHeaderMapPairs(0, nil, nil)
	h.ProxySetHeaderMapPairs(0, nil, 0)
	h.ProxyGetBufferBytes(0, 0, 0, nil, nil)
	h.ProxySetBufferBytes(0, 0, 0, nil, 0)
	h.ProxyHttpCall(nil, 0, nil, 0, nil, 0, nil, 0, 0, nil)
	h.ProxyCallForeignFunction(nil, 0, nil, 0, nil, nil)
	h.ProxySetTickPeriodMilliseconds(0)
	h.ProxySetEffectiveContext(0)
	h.ProxyDone()
	h.ProxyDefineMetric(0, nil, 0, nil)
	h.ProxyIncrementMetric(0, 0)
	h.ProxyRecordMetric(0, 0)
	h.ProxyGetMetric(0, nil)
}

func (hostcalls) ProxyLog(level uint32, message *byte, size int) uint32 {
	return abi.Log(level, ptr(message), uint32(size))
}

func (hostcalls) ProxySetProperty(path *byte, pathSize int, value *byte, valueSize int) uint32 {
	return abi.SetProperty(ptr(path), uint32(pathSize), ptr(value), uint32(valueSize))
}

func (hostcalls) ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32 {
	return abi.GetProperty(ptr(path), uint32(pathSize), ptr(value), ptr(valueSize))
}

func (hostcalls) ProxySendLocalResponse(code uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpcStatus int32) uint32 {
	return abi.SendLocalResponse(code, ptr(details), uint32(detailsSize), ptr(body), uint32(bodySize), ptr(headers), uint32(headersSize), grpcStatus)
}

func (hostcalls) ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32 {
	return abi.GetSharedData(ptr(key), uint32(keySize), ptr(value), ptr(valueSize), ptr(cas))
}

func (hostcalls) ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32 {
	return abi.SetSharedData(ptr(key), uint32(keySize), ptr(value), uint32(valueSize), cas)
}

func (hostcalls) ProxyRegisterSharedQueue(name *byte, nameSize int, id *uint32) uint32 {
	return abi.RegisterSharedQueue(ptr(name), uint32(nameSize), ptr(id))
}

func (hostcalls) ProxyResolveSharedQueue(vmID *byte, vmIDSize int, name *byte, nameSize int, id *uint32) uint32 {
	return abi.ResolveSharedQueue(ptr(vmID), uint32(vmIDSize), ptr(name), uint32(nameSize), ptr(id))
}

func (hostcalls) ProxyDequeueSharedQueue(id uint32, value **byte, valueSize *int) uint32 {
	return abi.DequeueSharedQueue(id, ptr(value), ptr(valueSize))
}

func (hostcalls) ProxyEnqueueSharedQueue(id uint32, value *byte, valueSize int) uint32 {
	return abi.EnqueueSharedQueue(id, ptr(value), uint32(valueSize))
}

func (hostcalls) ProxyGetHeaderMapValue(kind uint32, key *byte, keySize int, value **byte, valueSize *int) uint32 {
	return abi.GetHeaderMapValue(kind, ptr(key), uint32(keySize), ptr(value), ptr(valueSize))
}

func (hostcalls) ProxyAddHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32 {
	return abi.AddHeaderMapValue(kind, ptr(key), uint32(keySize), ptr(value), uint32(valueSize))
}

func (hostcalls) ProxyReplaceHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32 {
	return abi.ReplaceHeaderMapValue(kind, ptr(key), uint32(keySize), ptr(value), uint32(valueSize))
}

func (hostcalls) ProxyContinueStream(kind uint32) uint32 {
	return abi.ContinueStream(kind)
}

func (hostcalls) ProxyCloseStream(kind uint32) uint32 {
	return abi.CloseStream(kind)
}

func (hostcalls) ProxyRemoveHeaderMapValue(kind uint32, key *byte, keySize int) uint32 {
	return abi.RemoveHeaderMapValue(kind, ptr(key), uint32(keySize))
}

func (hostcalls) ProxyGetHeaderMapPairs(kind uint32, pairs **byte, size *int) uint32 {
	return abi.GetHeaderMapPairs(kind, ptr(pairs), ptr(size))
}

func (hostcalls) ProxySetHeaderMapPairs(kind uint32, pairs *byte, size int) uint32 {
	return abi.SetHeaderMapPairs(kind, ptr(pairs), uint32(size))
}

func (hostcalls) ProxyGetBufferBytes(kind uint32, start int, maxSize int, data **byte, size *int) uint32 {
	return abi.GetBufferBytes(kind, uint32(start), uint32(maxSize), ptr(data), ptr(size))
}

func (hostcalls) ProxySetBufferBytes(kind uint32, start int, maxSize int, data *byte, size int) uint32 {
	return abi.SetBufferBytes(kind, uint32(start), uint32(maxSize), ptr(data), uint32(size))
}

func (hostcalls) ProxyHttpCall(cluster *byte, clusterSize int, headers *byte, headersSize int, body *byte, bodySize int, trailers *byte, trailersSize int, timeout uint32, id *uint32) uint32 {
	return abi.HTTPCall(ptr(cluster), uint32(clusterSize), ptr(headers), uint32(headersSize), ptr(body), uint32(bodySize), ptr(trailers), uint32(trailersSize), timeout, ptr(id))
}

func (hostcalls) ProxyCallForeignFunction(name *byte, nameSize int, argument *byte, argumentSize int, result **byte, resultSize *int) uint32 {
	return abi.CallForeignFunction(ptr(name), uint32(nameSize), ptr(argument), uint32(argumentSize), ptr(result), ptr(resultSize))
}

func (hostcalls) ProxySetTickPeriodMilliseconds(period uint32) uint32 {
	return abi.SetTickPeriod(period)
}

func (hostcalls) ProxySetEffectiveContext(id uint32) uint32 {
	return abi.SetEffectiveContext(id)
}

func (hostcalls) ProxyDone() uint32 {
	return abi.Done()
}

func (hostcalls) ProxyDefineMetric(kind uint32, name *byte, nameSize int, id *uint32) uint32 {
	return abi.DefineMetric(kind, ptr(name), uint32(nameSize), ptr(id))
}

func (hostcalls) ProxyIncrementMetric(id uint32, offset int64) uint32 {
	return abi.IncrementMetric(id, offset)
}

func (hostcalls) ProxyRecordMetric(id uint32, value uint64) uint32 {
	return abi.RecordMetric(id, value)
}

func (hostcalls) ProxyGetMetric(id uint32, value *uint64) uint32 {
	return abi.GetMetric(id, ptr(value))
}
