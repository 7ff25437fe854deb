package wasmtest

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// engine holds what all hosts of a test binary have in common: compiling the
// filter takes a second, and starting a VM from the result a few milliseconds.
var engine struct {
	sync.Mutex
	runtime  wazero.Runtime
	compiled map[string]wazero.CompiledModule // by the module's bytes
}

// maxMemoryPages keeps a VM below 1 GB, so that a leak ends a test and not the
// machine it runs on. A page has 64 KiB.
const maxMemoryPages = 1 << 14

func compile(module []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	engine.Lock()
	defer engine.Unlock()
	ctx := context.Background()
	if err := startEngine(ctx); err != nil {
		return nil, nil, err
	}
	if compiled, found := engine.compiled[string(module)]; found {
		return engine.runtime, compiled, nil
	}
	compiled, err := engine.runtime.CompileModule(ctx, module)
	if err != nil {
		return nil, nil, err
	}
	engine.compiled[string(module)] = compiled
	return engine.runtime, compiled, nil
}

// compileListening is compile for one test: called is told of every call of a
// function.
func compileListening(module []byte, called func(function string)) (wazero.Runtime, wazero.CompiledModule, error) {
	engine.Lock()
	defer engine.Unlock()
	ctx := context.Background()
	if err := startEngine(ctx); err != nil {
		return nil, nil, err
	}
	compiled, err := engine.runtime.CompileModule(experimental.WithFunctionListenerFactory(ctx, listeners(called)), module)
	return engine.runtime, compiled, err
}

// listeners makes a listener for each function of a module.
type listeners func(function string)

func (l listeners) NewFunctionListener(function api.FunctionDefinition) experimental.FunctionListener {
	name := function.Name()
	return experimental.FunctionListenerFunc(func(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
		l(name)
	})
}

func startEngine(ctx context.Context) error {
	if engine.runtime != nil {
		return nil
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(maxMemoryPages))
	if err := exportHostcalls(ctx, runtime); err != nil {
		return err
	}
	engine.runtime = runtime
	engine.compiled = map[string]wazero.CompiledModule{}
	return nil
}

// exportHostcalls gives modules their imports: env is ours, WASI is wazero's
// but for the clock.
func exportHostcalls(ctx context.Context, runtime wazero.Runtime) error {
	env := runtime.NewHostModuleBuilder("env")
	for i := range hostcalls {
		h := &hostcalls[i]
		env.NewFunctionBuilder().WithGoModuleFunction(h, h.parameters(), statusResult).Export(h.name)
	}
	if _, err := env.Instantiate(ctx); err != nil {
		return err
	}
	wasi := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	wasi.NewFunctionBuilder().WithGoModuleFunction(&clockTimeGet, clockTimeGet.parameters(), statusResult).Export(clockTimeGet.name)
	_, err := wasi.Instantiate(ctx)
	return err
}
