package envoytest

import (
	"net"
	"slices"
	"strconv"
)

// HTTP2Cluster returns a cluster that speaks HTTP/2 with prior knowledge, as gRPC
// calls need it, to the servers at these addresses, IP:port. Without an address
// it has no endpoint.
func HTTP2Cluster(name string, addrs ...string) Object {
	return cluster(name, Object{"explicit_http_config": Object{"http2_protocol_options": Object{}}}, addrs...)
}

// ConnectTimeout sets how long a cluster's connections may take to be there, such
// as "0.25s"; else it is 10 s.
func ConnectTimeout(cluster Object, timeout string) Object {
	cluster["connect_timeout"] = timeout
	return cluster
}

// Thresholds sets a cluster's circuit breakers, by the names of Envoy's API, such
// as max_requests. Those that are not named are Envoy's own, mostly 1,024.
func Thresholds(cluster, thresholds Object) Object {
	cluster["circuit_breakers"] = Object{"thresholds": []Object{thresholds}}
	return cluster
}

// clusters returns all clusters of the bootstrap.
func (o Options) clusters() []Object {
	all := slices.Clone(o.Clusters)
	if o.Upstream == nil {
		return all
	}
	for _, own := range o.Upstream.clusters() {
		if !slices.ContainsFunc(o.Clusters, func(c Object) bool { return c["name"] == own["name"] }) {
			all = append(all, own)
		}
	}
	return all
}

func cluster(name string, protocols Object, addrs ...string) Object {
	protocols["@type"] = extensions + "upstreams.http.v3.HttpProtocolOptions"
	endpoints := []Object{}
	for _, addr := range addrs {
		endpoints = append(endpoints, Object{"endpoint": Object{"address": socketAddress(addr)}})
	}
	return Thresholds(Object{
		"name":            name,
		"connect_timeout": "10s",
		"type":            "STATIC",
		"typed_extension_protocol_options": Object{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocols,
		},
		"load_assignment": Object{"cluster_name": name, "endpoints": []Object{{"lb_endpoints": endpoints}}},
	}, Object{
		// How much is in flight must not be what a test of the filter's limits
		// runs into.
		"max_connections": 1_000_000, "max_pending_requests": 1_000_000, "max_requests": 1_000_000,
	})
}

// socketAddress is IP:port as Envoy's API has it. What is no such address Envoy
// refuses.
func socketAddress(addr string) Object {
	host, port, _ := net.SplitHostPort(addr)
	number, _ := strconv.Atoi(port)
	return Object{"socket_address": Object{"address": host, "port_value": number}}
}
