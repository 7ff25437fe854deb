package envoytest

// RateLimit returns Envoy's own ratelimit filter, which asks the rate limit
// server behind a cluster. It refuses with 500 where it gets no answer in the
// timeout, such as "0.5s", so that a test can tell that from a request admitted.
func RateLimit(cluster, domain, timeout string) Object {
	return httpFilter("envoy.filters.http.ratelimit", "http.ratelimit.v3.RateLimit", Object{
		"domain":            domain,
		"timeout":           timeout,
		"failure_mode_deny": true,
		"rate_limit_service": Object{
			"transport_api_version": "V3",
			"grpc_service":          Object{"envoy_grpc": Object{"cluster_name": cluster}},
		},
	})
}

// The place in the dynamic metadata where DescribeLimit reads the limit.
const limitNamespace, limitKey = "limit", "own"

// LimitMetadata returns the filter that has to stand before the one of RateLimit
// where routes are limited by DescribeLimit. Unit is SECOND, MINUTE, HOUR or DAY.
func LimitMetadata(requests int, unit string) Object {
	return SetMetadata(limitNamespace, Object{limitKey: Object{"requests_per_unit": requests, "unit": unit}})
}

// DescribeLimit has RateLimit send a descriptor for the requests of a route: a
// request header under the given key, with the limit of LimitMetadata.
func DescribeLimit(route Object, header, key string) Object {
	return With(route, "rate_limits", []Object{{
		"actions": []Object{{"request_headers": Object{"header_name": header, "descriptor_key": key}}},
		"limit": Object{"dynamic_metadata": Object{"metadata_key": Object{
			"key": limitNamespace, "path": []Object{{"key": limitKey}},
		}}},
	}})
}
