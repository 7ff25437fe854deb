package abi

import "unsafe"

// Hostcalls return a Status (see package host), 0 for success.

//go:wasmimport env proxy_log
func Log(level uint32, message unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_log_level
func GetLogLevel(level unsafe.Pointer) uint32

//go:wasmimport env proxy_set_property
func SetProperty(path unsafe.Pointer, pathSize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_get_property
func GetProperty(path unsafe.Pointer, pathSize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_send_local_response
func SendLocalResponse(code uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32, headers unsafe.Pointer, headersSize uint32, grpcStatus int32) uint32

//go:wasmimport env proxy_get_shared_data
func GetSharedData(key unsafe.Pointer, keySize uint32, value, valueSize, cas unsafe.Pointer) uint32

//go:wasmimport env proxy_set_shared_data
func SetSharedData(key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32, cas uint32) uint32

//go:wasmimport env proxy_register_shared_queue
func RegisterSharedQueue(name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_resolve_shared_queue
func ResolveSharedQueue(vmID unsafe.Pointer, vmIDSize uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_dequeue_shared_queue
func DequeueSharedQueue(id uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_enqueue_shared_queue
func EnqueueSharedQueue(id uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_get_header_map_value
func GetHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_add_header_map_value
func AddHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
func ReplaceHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
func RemoveHeaderMapValue(kind uint32, key unsafe.Pointer, keySize uint32) uint32

//go:wasmimport env proxy_get_header_map_pairs
func GetHeaderMapPairs(kind uint32, pairs, size unsafe.Pointer) uint32

//go:wasmimport env proxy_set_header_map_pairs
func SetHeaderMapPairs(kind uint32, pairs unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
func GetBufferBytes(kind, start, maxSize uint32, data, size unsafe.Pointer) uint32

//go:wasmimport env proxy_set_buffer_bytes
func SetBufferBytes(kind, start, maxSize uint32, data unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_continue_stream
func ContinueStream(kind uint32) uint32

//go:wasmimport env proxy_close_stream
func CloseStream(kind uint32) uint32

//go:wasmimport env proxy_http_call
func HTTPCall(cluster unsafe.Pointer, clusterSize uint32, headers unsafe.Pointer, headersSize uint32, body unsafe.Pointer, bodySize uint32, trailers unsafe.Pointer, trailersSize uint32, timeoutMS uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_grpc_call
func GRPCCall(target unsafe.Pointer, targetSize uint32, service unsafe.Pointer, serviceSize uint32, method unsafe.Pointer, methodSize uint32, metadata unsafe.Pointer, metadataSize uint32, message unsafe.Pointer, messageSize uint32, timeoutMS uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_grpc_cancel
func GRPCCancel(id uint32) uint32

//go:wasmimport env proxy_call_foreign_function
func CallForeignFunction(name unsafe.Pointer, nameSize uint32, argument unsafe.Pointer, argumentSize uint32, result, resultSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func SetTickPeriod(ms uint32) uint32

//go:wasmimport env proxy_set_effective_context
func SetEffectiveContext(id uint32) uint32

//go:wasmimport env proxy_done
func Done() uint32

//go:wasmimport env proxy_define_metric
func DefineMetric(kind uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func IncrementMetric(id uint32, offset int64) uint32

//go:wasmimport env proxy_record_metric
func RecordMetric(id uint32, value uint64) uint32

//go:wasmimport env proxy_get_metric
func GetMetric(id uint32, value unsafe.Pointer) uint32

// ClockTimeGet reads a clock in nanoseconds: 0 is the wall clock, 1 the
// monotonic one. It is wasi's; Go's time.Now makes two such calls and cannot
// return the monotonic reading alone.
//
//go:wasmimport wasi_snapshot_preview1 clock_time_get
func ClockTimeGet(clock uint32, precision uint64, ns unsafe.Pointer) uint32

// RandomGet fills memory with unpredictable bytes. It is wasi's; Go's
// crypto/rand makes the same call, and brings half a megabyte along.
//
//go:wasmimport wasi_snapshot_preview1 random_get
func RandomGet(buffer unsafe.Pointer, size uint32) uint32
