package main

import (
	"fmt"
	"sync"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

const (
	envoys  = 3
	workers = 2 // threads of each Envoy
	limit   = 3000
	// lease is the share of the limit that an Envoy takes at a time at most.
	lease   = 0.02
	largest = limit * lease
	folder  = "fleet" // under build/e2e-logs
)

// fleet is everything that runs.
type fleet struct {
	envoys    []*envoytest.Envoy // that have not been killed
	started   []*envoytest.Envoy
	rateLimit *fleettest.Server
	servers   []*fleettest.Server // the rate limit server among them
}

// way is how a limit is counted. The listeners for it, one in each Envoy, and the
// limit are called by its name.
type way struct {
	name, protocol, mode string
	algorithm            string // of the limit, with its numbers, in JSON
}

const (
	// The rate limit server counts in calendar windows.
	aDay = `"algorithm": "fixed_window", "limit": %d, "window": "1d"`
	// Gubernator counts in buckets too. One that hardly refills admits its capacity
	// while this runs, and no more.
	bucket = `"algorithm": "token_bucket", "capacity": %d, "refill_rate": "10/d"`
)

var (
	rlsStrict        = way{"rls-strict", "rls", "strict", aDay}
	rlsLease         = way{"rls-lease", "rls", "lease", aDay}
	gubernatorStrict = way{"gubernator-strict", "gubernator", "strict", bucket}
	gubernatorLease  = way{"gubernator-lease", "gubernator", "lease", bucket}
)

// config is the filter's. A slow machine is no failure of the service, so the
// answer may take long.
func (w way) config() string {
	return fmt.Sprintf(`{
		"global": {"cluster": %q, "protocol": %q, "mode": %q, "lease": %v, "timeout": "5s", "on_failure": "local"},
		"limits": {%q: {`+w.algorithm+`, "key": ["client=header:x-client"], "scope": "global"}},
		"rules":  [{"limits": [%q]}]
	}`, w.protocol, w.protocol, w.mode, lease, w.name, limit, w.name)
}

// start starts everything. What it has started by the time of an error, end ends.
func (f *fleet) start() error {
	upstream, err := envoytest.RunUpstream()
	if err != nil {
		return err
	}
	rls, gubernators, err := f.startServers()
	if err != nil {
		return err
	}
	module, err := envoytest.Built("make build", "sluice.wasm")
	if err != nil {
		return err
	}
	options := envoytest.Options{
		Workers:  workers,
		Upstream: upstream,
		Clusters: []envoytest.Object{
			envoytest.HTTP2Cluster("rls", rls),
			envoytest.HTTP2Cluster("gubernator", gubernators...),
		},
	}
	for _, w := range []way{rlsStrict, rlsLease, gubernatorStrict, gubernatorLease} {
		options.Listeners = append(options.Listeners, envoytest.Listener{
			Name:    w.name,
			Filters: []envoytest.Object{envoytest.Wasm{Module: module, Config: w.config(), Name: w.name}.Filter()},
		})
	}
	return f.startEnvoys(options)
}

// startServers returns the addresses of the rate limit server and of the
// Gubernators.
func (f *fleet) startServers() (rls string, gubernators []string, err error) {
	valkey, err := fleettest.RunValkey(folder)
	if err != nil {
		return "", nil, err
	}
	f.servers = append(f.servers, valkey)
	if f.rateLimit, err = fleettest.RunRateLimit(folder, valkey); err != nil {
		return "", nil, err
	}
	f.servers = append(f.servers, f.rateLimit)
	peers, err := fleettest.RunGubernators(folder, 2)
	if err != nil {
		return "", nil, err
	}
	for _, peer := range peers {
		f.servers = append(f.servers, peer)
		gubernators = append(gubernators, peer.Addr())
	}
	return f.rateLimit.Addr(), gubernators, nil
}

// startEnvoys starts them together, since each takes its time.
func (f *fleet) startEnvoys(o envoytest.Options) error {
	var (
		started [envoys]*envoytest.Envoy
		errs    [envoys]error
		done    sync.WaitGroup
	)
	for i := range started {
		done.Go(func() { started[i], errs[i] = envoytest.Run(folder, o) })
	}
	done.Wait()
	var failed error
	for i, e := range started {
		if errs[i] != nil {
			failed = errs[i]
			continue
		}
		f.started = append(f.started, e)
	}
	f.envoys = f.started
	return failed
}

// end ends everything that still runs. What Envoys and servers logged is kept
// where somebody may want to read it.
func (f *fleet) end(keep bool) {
	for _, e := range f.started {
		e.Stop(keep)
	}
	for _, s := range f.servers {
		s.Stop(keep)
	}
}

// killLastEnvoy ends it as a crash would.
func (f *fleet) killLastEnvoy() {
	last := len(f.envoys) - 1
	f.envoys[last].Stop(true)
	f.envoys = f.envoys[:last]
}
