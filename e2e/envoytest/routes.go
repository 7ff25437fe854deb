package envoytest

import (
	"encoding/json"
	"testing"
)

// VirtualHost is a virtual host for one host, with the given routes.
func VirtualHost(name, host string, routes ...Object) Object {
	return Object{"name": name, "domains": []string{host}, "routes": routes}
}

// WithMetadata sets what a route's metadata says to the filter.
func WithMetadata(route, metadata Object) Object {
	route["metadata"] = Object{"filter_metadata": Object{"sluice": metadata}}
	return route
}

// WithoutFilters has Envoy leave these filters out on a route, by their names in
// the chain.
func WithoutFilters(route Object, names ...string) Object {
	disabled := Object{}
	for _, name := range names {
		disabled[name] = Object{"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true}
	}
	route["typed_per_filter_config"] = disabled
	return route
}

// Named gives a filter another name in its chain than its kind has.
func Named(filter Object, name string) Object {
	filter["name"] = name
	return filter
}

// StructFilter is Filter with the configuration as a google.protobuf.Struct,
// which is how Istio passes one on, instead of a string.
func (w Wasm) StructFilter(t testing.TB) Object {
	t.Helper()
	var document Object
	if err := json.Unmarshal([]byte(w.Config), &document); err != nil {
		t.Fatal(err)
	}
	filter := w.Filter()
	filter["typed_config"].(Object)["config"].(Object)["configuration"] = Object{
		"@type": "type.googleapis.com/google.protobuf.Struct",
		"value": document,
	}
	return filter
}
