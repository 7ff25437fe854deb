package policy

import (
	"fmt"
	"testing"
)

// keyed is a limit of 2 with this key.
func keyed(key, further string) string {
	return `{"limits": {"a": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ` + key + `}}, ` + further + `
		"rules": [{"name": "login", "match": {"path": "/login"}, "limits": ["a"]}, {"name": "read", "match": {"path": "/read"}, "limits": ["a"]}, {"limits": ["a"]}]}`
}

func TestARulesNameInAKeyTellsItsRequestsFromOthers(t *testing.T) {
	b := start(t, keyed(`["rule"]`, ""))
	b.admits("one rule", at("/login"), 2)
	b.admits("another rule", at("/read"), 2)
	b.admits("a rule without a name", at("/"), 2)
	b.admits("elsewhere under it", at("/elsewhere"), 0)
	b.admits("the first rule, spelled in another way", at("/x/../login/"), 0)
}

func TestAVirtualHostInAKeyTellsItsRequestsFromOthers(t *testing.T) {
	b := start(t, keyed(`["virtual_host", "route"]`, ""))
	b.admits("one", request{virtualHost: "shop", route: "api"}, 2)
	b.admits("another", request{virtualHost: "blog", route: "api"}, 2)
	b.admits("another route of the first", request{virtualHost: "shop", route: "web"}, 2)
	b.admits("without a route's name", request{virtualHost: "shop"}, 2)
	b.admits("the first again", request{virtualHost: "shop", route: "api", host: "elsewhere"}, 0)
}

func TestPrefixesWidenKeysAndNotMatches(t *testing.T) {
	b := start(t, `{"client_ip": {"ipv4_prefix": 20, "ipv6_prefix": 47},
		"limits": {"a": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["header:x-user|ip"]}},
		"rules": [{"match": {"ip": ["192.0.2.7", "2001:db8::7"]}, "limits": []}, {"match": {"value": {"ip": "192.0.2.8"}}, "limits": []}, {"limits": ["a"]}]}`)
	for _, c := range []struct {
		address string
		want    int
	}{
		{"192.0.2.1", 2},
		{"192.0.2.1", 0},
		{"192.0.15.255", 0}, // the last of its /20
		{"192.0.16.0", 2},
		{"192.0.2.7", 10}, // by its full address
		{"192.0.2.8", 10},
		{"192.0.2.9", 0},
		{"2001:db8::1", 2},
		{"2001:db8:1:ffff::1", 0}, // the last of its /47
		{"2001:db8:2::1", 2},
		{"2001:db8::7", 10},
		{"2001:db8::8", 0},
	} {
		b.admits(c.address, request{address: c.address}, c.want)
	}
}

func TestWholeAddressesCanBeToldApart(t *testing.T) {
	b := start(t, keyed(`["ip"]`, `"client_ip": {"ipv4_prefix": 32, "ipv6_prefix": 128},`))
	for i := range 4 {
		b.admits("IPv6", request{address: fmt.Sprintf("2001:db8::%d", i)}, 2)
		b.admits("IPv4", request{address: fmt.Sprintf("192.0.2.%d", i)}, 2)
	}
	// One bit of it: everybody with IPv4 below 128.0.0.0 is one client.
	b = start(t, keyed(`["ip"]`, `"client_ip": {"ipv4_prefix": 1, "ipv6_prefix": 1},`))
	b.admits("a low address", request{address: "10.0.0.1"}, 2)
	b.admits("another", request{address: "127.0.0.1"}, 0)
	b.admits("a high one", request{address: "192.0.2.1"}, 2)
	b.admits("IPv6", request{address: "2001:db8::1"}, 2)
}

func TestAChangeOfPrefixStartsAfresh(t *testing.T) {
	before := start(t, keyed(`["ip"]`, ""))
	before.admits("before", at("/"), 2)
	startOn(t, before.store, keyed(`["ip"]`, `"client_ip": {"ipv4_prefix": 32},`)).admits("the default, spelled out", at("/"), 0)
	startOn(t, before.store, keyed(`["ip"]`, `"client_ip": {"ipv4_prefix": 24},`)).admits("another width", at("/"), 2)
}

func TestEverySourceOfAKeyTellsItsValuesApart(t *testing.T) {
	for _, part := range []string{"cookie:s", "query:q", "bearer", "metadata:f/a/b", "metadata_number:f/n", "property:a/b"} {
		b := start(t, keyed(`["`+part+`"]`, ""))
		value := func(v string) request { return request{values: map[string]string{part: v}} }
		b.admits(part, value("1"), 2)
		b.admits(part+" of another value", value("2"), 2)
		b.admits(part+" missing", request{}, 2)
		b.admits(part+" empty, which is missing", value(""), 0)
		b.admits(part+" again", value("1"), 0)
	}
}
