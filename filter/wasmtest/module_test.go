package wasmtest

import (
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// Go's linker drops hostcalls that it sees nobody make, and Envoy leaves out a
// callback that is not exported without a word. So a module that lacks one
// builds, loads, and fails only whoever needs it.
func TestTheModuleHasEveryHostcallAndCallbackThatAFilterNeeds(t *testing.T) {
	_, compiled, err := compile(Module(t))
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]bool{}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		imported[module+" "+name] = true
	}
	for _, name := range []string{
		// Ticks and streams that wait.
		"env proxy_set_tick_period_milliseconds", "env proxy_set_effective_context", "env proxy_continue_stream",
		"env proxy_close_stream", "env proxy_send_local_response", "env proxy_done",
		// Calls out and their answers. (proxy_grpc_call is the host layer's, not the
		// SDK's, and so comes with the first who calls it.)
		"env proxy_http_call", "env proxy_get_buffer_bytes",
		// Metrics.
		"env proxy_define_metric", "env proxy_increment_metric", "env proxy_record_metric", "env proxy_get_metric",
		// What a request is, and what it is told.
		"env proxy_get_property", "env proxy_set_property",
		"env proxy_get_header_map_value", "env proxy_get_header_map_pairs",
		"env proxy_replace_header_map_value", "env proxy_remove_header_map_value", "env proxy_add_header_map_value",
		// The table.
		"env proxy_get_shared_data", "env proxy_set_shared_data",
		"wasi_snapshot_preview1 clock_time_get", "wasi_snapshot_preview1 random_get",
		"env proxy_log",
	} {
		if !imported[name] {
			t.Errorf("%s is not imported", name)
		}
	}
	exported := compiled.ExportedFunctions()
	for _, name := range []string{
		"_initialize", "proxy_abi_version_0_2_1", "proxy_on_memory_allocate",
		"proxy_on_vm_start", "proxy_on_configure", "proxy_on_context_create", "proxy_on_delete",
		"proxy_on_request_headers", "proxy_on_response_headers", "proxy_on_response_trailers",
		"proxy_on_tick", "proxy_on_http_call_response", "proxy_on_grpc_receive", "proxy_on_grpc_close",
	} {
		if exported[name] == nil {
			t.Errorf("%s is not exported", name)
		}
	}
	// The ABI has no 64-bit pointers: one that slipped through would be read as
	// two arguments.
	for name, f := range exported {
		for _, parameter := range f.ParamTypes() {
			if strings.HasPrefix(name, "proxy_on_") && parameter != api.ValueTypeI32 {
				t.Errorf("%s takes a parameter that is not 32 bits wide", name)
			}
		}
	}
}

// envoysWASI is what Envoy 1.36 has of WASI: FOR_ALL_WASI_FUNCTIONS in
// include/proxy-wasm/exports.h of proxy-wasm-cpp-host. wazero has more.
var envoysWASI = []string{
	"args_get", "args_sizes_get", "clock_time_get", "environ_get", "environ_sizes_get", "fd_close", "fd_fdstat_get", "fd_fdstat_set_flags",
	"fd_prestat_dir_name", "fd_prestat_get", "fd_read", "fd_seek", "fd_write", "path_open", "poll_oneoff", "proc_exit", "random_get", "sched_yield",
}

// Envoy refuses a module that imports anything else, and says so only when it is
// loaded. A new version of Go may be all that it takes.
func TestTheModuleImportsNothingThatEnvoyLacks(t *testing.T) {
	_, compiled, err := compile(Module(t))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, name := range envoysWASI {
		has["wasi_snapshot_preview1 "+name] = true
	}
	for i := range hostcalls {
		has["env "+hostcalls[i].name] = true
	}
	for _, f := range compiled.ImportedFunctions() {
		if module, name, _ := f.Import(); !has[module+" "+name] {
			t.Errorf("%s is imported from %s, and Envoy 1.36 does not have it", name, module)
		}
	}
	if n := len(compiled.ImportedMemories()); n > 0 {
		t.Errorf("%d memories are imported", n)
	}
}

func TestTheModuleIsStripped(t *testing.T) {
	sections, fault := customSections(Module(t))
	if fault != "" {
		t.Fatal(fault)
	}
	for _, name := range sections {
		if name == "name" || strings.HasPrefix(name, ".debug") {
			t.Errorf("the module has a section %q, which only a debugger reads", name)
		}
	}
}

// customSections returns the names of a module's custom sections. A section is
// its kind (0: custom), its size and its content, which for a custom one begins
// with the name (WebAssembly Core Specification, 5.5).
func customSections(module []byte) (names []string, fault string) {
	const preamble = 8
	if len(module) < preamble || string(module[:4]) != "\x00asm" {
		return nil, "this is no WebAssembly module"
	}
	for rest := module[preamble:]; len(rest) > 0; {
		kind := rest[0]
		size, content := unsigned(rest[1:])
		if size > len(content) {
			return nil, "a section ends after the module"
		}
		if kind == 0 {
			length, name := unsigned(content[:size])
			names = append(names, string(name[:min(length, len(name))]))
		}
		rest = content[size:]
	}
	return names, ""
}

// unsigned reads a number of seven bits a byte, the lowest first.
func unsigned(b []byte) (n int, rest []byte) {
	for i := range b {
		n |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return n, b[i+1:]
		}
	}
	return n, nil
}
