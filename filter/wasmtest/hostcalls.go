package wasmtest

// hostcalls are the imports from module env: those of ABI 0.2.1 in Envoy.
var hostcalls = []hostcall{
	{name: "proxy_log", params: "id", serve: serveLog},
	{name: "proxy_get_log_level", params: "r", serve: serveGetLogLevel},
	{name: "proxy_get_current_time_nanoseconds", params: "r", races: true, serve: serveCurrentTime},

	{name: "proxy_get_shared_data", params: "drrr", races: true, serve: serveGetSharedData},
	{name: "proxy_set_shared_data", params: "ddi", races: true, serve: serveSetSharedData},

	{name: "proxy_define_metric", params: "idr", serve: serveDefineMetric},
	{name: "proxy_increment_metric", params: "iI", serve: serveIncrementMetric},
	{name: "proxy_record_metric", params: "iI", serve: serveRecordMetric},
	{name: "proxy_get_metric", params: "ir", serve: serveGetMetric},

	{name: "proxy_get_property", params: "drr", serve: serveGetProperty},
	{name: "proxy_set_property", params: "dd", serve: serveSetProperty},

	{name: "proxy_get_header_map_value", params: "idrr", serve: serveGetHeader},
	{name: "proxy_get_header_map_pairs", params: "irr", serve: serveGetHeaders},
	{name: "proxy_get_header_map_size", params: "ir", serve: serveGetHeadersSize},
	{name: "proxy_add_header_map_value", params: "idd", serve: serveAddHeader},
	{name: "proxy_replace_header_map_value", params: "idd", serve: serveReplaceHeader},
	{name: "proxy_remove_header_map_value", params: "id", serve: serveRemoveHeader},
	{name: "proxy_set_header_map_pairs", params: "id", serve: serveSetHeaders},

	{name: "proxy_get_buffer_bytes", params: "iiirr", serve: serveGetBuffer},
	{name: "proxy_get_buffer_status", params: "irr", serve: serveGetBufferStatus},
	{name: "proxy_set_buffer_bytes", params: "iiid", serve: serveSetBuffer},

	{name: "proxy_send_local_response", params: "idddi", serve: serveSendLocalResponse},
	{name: "proxy_continue_stream", params: "i", serve: serveContinueStream},
	{name: "proxy_close_stream", params: "i", serve: serveCloseStream},

	{name: "proxy_set_effective_context", params: "i", serve: serveSetEffectiveContext},
	{name: "proxy_set_tick_period_milliseconds", params: "i", serve: serveSetTickPeriod},
	{name: "proxy_done", params: "", serve: serveDone},
	{name: "proxy_call_foreign_function", params: "ddrr", serve: serveForeignFunction},

	{name: "proxy_http_call", params: "ddddir", serve: serveHTTPCall},
	{name: "proxy_grpc_call", params: "dddddir", serve: serveGRPCCall},
	{name: "proxy_grpc_cancel", params: "i", serve: serveGRPCCancel},

	// These exist so that a module that imports them can be loaded.
	{name: "proxy_get_status", params: "rrr", serve: serveUnimplemented},
	{name: "proxy_grpc_stream", params: "ddddr", serve: serveUnimplemented},
	{name: "proxy_grpc_close", params: "i", serve: serveUnimplemented},
	{name: "proxy_grpc_send", params: "idi", serve: serveUnimplemented},
	{name: "proxy_register_shared_queue", params: "dr", serve: serveUnimplemented},
	{name: "proxy_resolve_shared_queue", params: "ddr", serve: serveUnimplemented},
	{name: "proxy_dequeue_shared_queue", params: "irr", serve: serveUnimplemented},
	{name: "proxy_enqueue_shared_queue", params: "id", serve: serveUnimplemented},
}

// clockTimeGet is WASI's reading of a clock.
var clockTimeGet = hostcall{name: "clock_time_get", params: "iIr", races: true, serve: serveClock}

func serveUnimplemented(*invocation) Status { return Unimplemented }
