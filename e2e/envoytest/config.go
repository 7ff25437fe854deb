package envoytest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

// Object is one JSON object of Envoy's configuration.
type Object = map[string]any

// The type URL prefix of Envoy's own extensions.
const extensions = "type.googleapis.com/envoy.extensions."

// Options say what Envoy to start.
type Options struct {
	Version   string    // one of Versions; "" is Current
	Workers   int       // worker threads; 0 is 1
	Upstream  *Upstream // what stands behind the cluster "upstream"; nil: there is none
	Listeners []Listener
	// Clusters are further ones. One that is named as one of the upstream's, which
	// are "upstream" and "model", takes its place.
	Clusters []Object
	// Dynamic has Envoy read its listeners from a file that it watches (LDS),
	// so that a test can push others. Else they are part of the bootstrap, and
	// a listener that is refused ends Envoy.
	Dynamic bool
	// Bootstrap is given to Envoy, in YAML, instead of one made of the upstream
	// and the listeners; "" for the latter.
	Bootstrap string
	// DrainTime is how many seconds a listener has to drain; 0 is ten minutes.
	DrainTime int
	// WasmLog is the level of the logger "wasm"; "" is "info". At "trace" it logs
	// every call between Envoy and a module.
	WasmLog string
}

// Listener is a listener with one HTTP connection manager, on a free port of a
// loopback address. It takes HTTP/1.1 and HTTP/2 with prior knowledge.
type Listener struct {
	Name string // "" is "main"; also its prefix in stats: listener.NAME
	// Filters run in this order; the router follows them.
	Filters []Object
	// Routes are the routes of the virtual host "all", which takes every host.
	// None: everything goes to the cluster "upstream".
	Routes []Object
	// VirtualHosts are further ones, for hosts of their own.
	VirtualHosts []Object
	// ProxyProtocol makes every connection begin with a PROXY line, which says
	// who the client is.
	ProxyProtocol bool
	// Manager are further fields of the HTTP connection manager.
	Manager Object
	// BufferLimit is how many bytes Envoy buffers of a connection; 0 is 1 MiB.
	BufferLimit int
}

// Wasm says how to load a module as an HTTP filter.
type Wasm struct {
	Module string // path of the .wasm file
	Config string // the plugin's configuration, as it is
	Name   string // the plugin's name; "" is "sluice"
	VMID   string // "" is "sluice"
}

// Filter returns the filter as an element of Listener.Filters. Like every
// example of the project it has a VM that died reloaded; the first attempt
// comes after a fifth of a second.
func (w Wasm) Filter() Object {
	return httpFilter("wasm", "http.wasm.v3.Wasm", Object{"config": Object{
		"name":    or(w.Name, "sluice"),
		"root_id": or(w.Name, "sluice"),
		"vm_config": Object{
			"vm_id":   or(w.VMID, "sluice"),
			"runtime": "envoy.wasm.runtime.v8",
			"code":    Object{"local": Object{"filename": w.Module}},
		},
		"configuration": Object{
			"@type": "type.googleapis.com/google.protobuf.StringValue",
			"value": w.Config,
		},
		"failure_policy": "FAIL_RELOAD",
		"reload_config":  Object{"backoff": Object{"base_interval": "0.2s"}},
	}})
}

// CORS returns Envoy's cors filter. Routes say which origins it allows; see
// AllowOrigin.
func CORS() Object {
	return httpFilter("envoy.filters.http.cors", "http.cors.v3.Cors", Object{})
}

// Lua returns Envoy's Lua filter with the given script.
func Lua(script string) Object {
	return httpFilter("lua", "http.lua.v3.Lua", Object{
		"default_source_code": Object{"inline_string": script},
	})
}

// ToUpstream returns a route for all paths that begin with prefix to the
// cluster "upstream".
func ToUpstream(name, prefix string) Object {
	return Object{
		"name":  name,
		"match": Object{"prefix": prefix},
		"route": Object{"cluster": "upstream", "timeout": "60s"},
	}
}

// Direct returns a route for all paths that begin with prefix, which Envoy
// answers itself with 200 and the body "ok".
func Direct(name, prefix string) Object {
	return Object{
		"name":            name,
		"match":           Object{"prefix": prefix},
		"direct_response": Object{"status": 200, "body": Object{"inline_string": "ok"}},
	}
}

// AllowOrigin sets what CORS does on a route: it allows one origin.
func AllowOrigin(route Object, origin string) Object {
	route["typed_per_filter_config"] = Object{"envoy.filters.http.cors": Object{
		"@type":                     extensions + "filters.http.cors.v3.CorsPolicy",
		"allow_origin_string_match": []Object{{"exact": origin}},
		"allow_methods":             "GET",
		"expose_headers":            "retry-after",
	}}
	return route
}

// FollowRedirects makes a route follow redirects of its upstream inside Envoy.
func FollowRedirects(route Object) Object {
	route["route"].(Object)["internal_redirect_policy"] = Object{"max_internal_redirects": 1}
	return route
}

func httpFilter(name, typ string, config Object) Object {
	config["@type"] = extensions + "filters." + typ
	return Object{"name": name, "typed_config": config}
}

// accessLog is the file of a listener's access log, which has one JSON object
// a line.
func accessLog(listener string) string { return "access-" + listener + ".log" }

// envoyListener returns the listener as Envoy's API has it, with an address by
// its number. Its access log is in dir.
func (l Listener) envoyListener(dir string, number int) Object {
	routes := l.Routes
	if routes == nil {
		routes = []Object{ToUpstream("all", "/")}
	}
	manager := Object{
		"@type":              extensions + "filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":        l.name(),
		"use_remote_address": true,
		"route_config": Object{"name": "routes", "virtual_hosts": append([]Object{
			{"name": "all", "domains": []string{"*"}, "routes": routes},
		}, l.VirtualHosts...)},
		"http_filters": append(append([]Object{}, l.Filters...),
			httpFilter("envoy.filters.http.router", "http.router.v3.Router", Object{})),
		"access_log": []Object{{"name": "file", "typed_config": Object{
			"@type": extensions + "access_loggers.file.v3.FileAccessLog",
			"path":  filepath.Join(dir, accessLog(l.name())),
			"log_format": Object{"json_format": Object{
				"path":    "%REQ(:PATH)%",
				"status":  "%RESPONSE_CODE%",
				"details": "%RESPONSE_CODE_DETAILS%",
				"state":   "%FILTER_STATE(wasm.sluice:PLAIN)%",
			}},
		}}},
	}
	maps.Copy(manager, l.Manager)
	listener := Object{
		"@type":       "type.googleapis.com/envoy.config.listener.v3.Listener",
		"name":        l.name(),
		"stat_prefix": l.name(),
		"address":     freePort(fmt.Sprintf("127.100.%d.%d", number/250, 1+number%250)),
		"filter_chains": []Object{{"filters": []Object{
			{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager},
		}}},
	}
	if l.BufferLimit > 0 {
		listener["per_connection_buffer_limit_bytes"] = l.BufferLimit
	}
	if l.ProxyProtocol {
		listener["listener_filters"] = []Object{{"name": "proxy_protocol", "typed_config": Object{
			"@type": extensions + "filters.listener.proxy_protocol.v3.ProxyProtocol",
		}}}
	}
	return listener
}

func (l Listener) name() string { return or(l.Name, "main") }

// freePort has Envoy listen on a port that is free; Envoy says which one.
//
// Every listener of an Envoy needs an IP address of its own. Where several ask
// for a free port of the same one, a new listener may get the socket of another
// that has just been changed, because Envoy takes their addresses for equal.
func freePort(ip string) Object {
	return Object{"socket_address": Object{"address": ip, "port_value": 0}}
}

// writeBootstrap writes Envoy's bootstrap into its folder, and returns the file.
func (o Options) writeBootstrap(dir string) (string, error) {
	if o.Bootstrap != "" {
		file := filepath.Join(dir, "bootstrap.yaml")
		return file, os.WriteFile(file, []byte(o.Bootstrap), 0o644)
	}
	file := filepath.Join(dir, "bootstrap.json")
	return file, writeJSON(file, o.bootstrap(dir))
}

// bootstrap returns Envoy's bootstrap. With Dynamic, the listeners are left to
// the file listeners.json in dir.
func (o Options) bootstrap(dir string) Object {
	static := Object{"clusters": o.clusters()}
	b := Object{
		"admin":            Object{"address": freePort("127.0.0.1")},
		"static_resources": static,
	}
	if o.Dynamic {
		// LDS needs to know who asks, though it is only a file.
		b["node"] = Object{"id": "e2e", "cluster": "e2e"}
		b["dynamic_resources"] = Object{"lds_config": Object{
			"resource_api_version": "V3",
			"path_config_source": Object{
				"path":              filepath.Join(dir, listenersFile),
				"watched_directory": Object{"path": dir},
			},
		}}
		return b
	}
	listeners := []Object{}
	for i, l := range o.Listeners {
		listener := l.envoyListener(dir, i)
		delete(listener, "@type")
		listeners = append(listeners, listener)
	}
	static["listeners"] = listeners
	return b
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
