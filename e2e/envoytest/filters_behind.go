package envoytest

// The filters in this file stand behind the filter in a test's chain, and answer
// in place of the upstream, or write down what a response cost.

// DenyHeader returns Envoy's rbac filter, which answers 403 to requests that have
// this header with this value.
func DenyHeader(name, value string) Object {
	return httpFilter("envoy.filters.http.rbac", "http.rbac.v3.RBAC", Object{"rules": Object{
		"action": "DENY",
		"policies": Object{"header": Object{
			"permissions": []Object{{"header": Object{"name": name, "string_match": Object{"exact": value}}}},
			"principals":  []Object{{"any": true}},
		}},
	}})
}

// Faults returns Envoy's fault filter, which answers requests that have the
// header x-envoy-fault-abort-request with the status in it.
func Faults() Object {
	return httpFilter("envoy.filters.http.fault", "http.fault.v3.HTTPFault", Object{
		"abort": Object{"header_abort": Object{}, "percentage": Object{"numerator": 100}},
	})
}

// ResponseHeaderToMetadata returns Envoy's header_to_metadata filter, which
// writes a response's header into the dynamic metadata of its stream, under the
// name namespace, as a value of this type: STRING or NUMBER.
func ResponseHeaderToMetadata(header, namespace, key, typ string) Object {
	return httpFilter("envoy.filters.http.header_to_metadata", "http.header_to_metadata.v3.Config", Object{
		"response_rules": []Object{{
			"header":            header,
			"on_header_present": Object{"metadata_namespace": namespace, "key": key, "type": typ},
			"remove":            true,
		}},
	})
}

// To returns a route for all paths that begin with prefix to a cluster.
func To(cluster, prefix string) Object {
	route := ToUpstream(cluster+prefix, prefix)
	route["route"].(Object)["cluster"] = cluster
	return route
}

// With sets a field of what a route to a cluster does.
func With(route Object, field string, value any) Object {
	route["route"].(Object)[field] = value
	return route
}
