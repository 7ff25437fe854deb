package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// capacity is that of the limits of these tests: more than any of them uses.
const capacity = 1000

// keyedSite is a site with a limit for each key part, which applies to paths
// that begin with "/" and the part's number.
type keyedSite struct {
	*site
	numbers map[string]int
}

// serveKeys starts a site with these key parts. It has further fields of the
// config, with a comma behind them. A request that lacks a part goes unlimited.
func serveKeys(t *testing.T, l envoytest.Listener, further string, parts ...string) keyedSite {
	t.Helper()
	limits, rules, numbers := envoytest.Object{}, []envoytest.Object{}, map[string]int{}
	for i, part := range parts {
		name := fmt.Sprint("limit-", i)
		limits[name] = envoytest.Object{
			"algorithm": "token_bucket", "capacity": capacity, "refill_rate": "1/d", "key": []string{part}, "missing": "skip",
		}
		for _, end := range []string{"a", "b"} {
			rules = append(rules, envoytest.Object{
				"name": fmt.Sprint("rule-", i, "-", end), "match": envoytest.Object{"path": fmt.Sprint("/", i, "/", end)}, "limits": []string{name},
			})
		}
		numbers[part] = i
	}
	config, err := json.Marshal(envoytest.Object{"limits": limits, "rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	return keyedSite{serve(t, "{"+further+string(config[1:]), l), numbers}
}

// path is where the limit with this key part applies.
func (s keyedSite) path(part, end string) string { return fmt.Sprint("/", s.numbers[part], "/", end) }

// used is how many requests the client that sent this one has made.
func used(t *testing.T, r envoytest.Response) int {
	t.Helper()
	expectAdmitted(t, r)
	return capacity - number(t, r, "RateLimit-Remaining")
}

// request is one request to a keyedSite.
type request struct {
	query   string
	end     string // of the path; "" is "a"
	http2   bool
	headers []string
}

func with(headers ...string) request { return request{headers: headers} }

func asking(query string) request { return request{query: query} }

func TestEverySourceOfAKeyTellsClientsApart(t *testing.T) {
	sources := []struct {
		part    string
		clients [][]request // each is one client's requests
		lacking []request   // have no such part
	}{
		{"header:x-key", [][]request{
			{with("x-key: a"), with("X-Key: a"), {http2: true, headers: []string{"x-key: a"}}},
			{with("x-key: A")},
			{with("x-key: a", "x-key: b"), with("x-key: a,b"), {http2: true, headers: []string{"x-key: a", "x-key: b"}}},
			{with("x-key: b", "x-key: a")},
		}, []request{with(), with("x-key: "), with("x-key2: a")}},
		{"cookie:sid", [][]request{
			{
				with("cookie: sid=a"), with("cookie: x=1; sid=a; sid=b"), with(`cookie: sid="a"`), with("cookie: x=1", "cookie: sid=a", "cookie: sid=b"),
				{http2: true, headers: []string{"cookie: x=1", "cookie: sid=a; sid=b"}},
			},
			{with("cookie: sid=A")},
			{with("cookie: sid=b")},
		}, []request{with(), with("cookie: sid="), with("cookie: SID=a"), with("cookie: x=sid=a"), with("x-sid: a")}},
		{"query:key", [][]request{
			{asking("?key=a%20b"), asking("?key=a+b"), asking("?k%65y=a%20b&key=c"), asking("?x=1&key=a%20b")},
			{asking("?key=a%2Bb")},
			{asking("?key=c"), asking("?x=1;key=d&key=c")},
			{asking("?key=%zz"), asking("?key=%25zz")},
		}, []request{asking(""), asking("?key="), asking("?key=&key=a"), asking("?KEY=a"), asking("?x=1;key=a")}},
		{"bearer", [][]request{
			{with("authorization: Bearer a"), with("authorization: bearer a"), with("authorization: BEARER  a"), with("authorization: Bearer a ")},
			{with("authorization: Bearer A")},
			{
				with("authorization: Bearer a", "authorization: Bearer b"), with("authorization: Bearer b", "authorization: Bearer a"),
				with("authorization: Basic c", "authorization: Bearer a"), with("authorization: Bearer a, b"), with("authorization: Bearer a b"),
				{http2: true, headers: []string{"authorization: Bearer a", "authorization: Bearer c"}},
			},
		}, []request{with(), with("authorization: Bearer"), with("authorization: Basic a"), with("authorization: a"), with("x-authorization: Bearer a")}},
		{"property:request/headers/x-key", [][]request{
			{with("x-key: a")}, {with("x-key: b")}, {with("x-key: 12345678")},
		}, []request{with(), with("x-key: ")}},
		{"rule", [][]request{{{end: "a"}, {end: "a", query: "?x"}}, {{end: "b"}}}, nil},
		{"route", [][]request{{{end: "a"}, {end: "b"}}}, nil},
		{"virtual_host", [][]request{{{end: "a"}, with("host: other.test")}}, nil},
		{"host", [][]request{{with("host: a.test"), with("host: A.test.:80")}, {with("host: b.test")}}, nil},
		// Numbers and booleans are no strings; nor is there a property of any name.
		{"property:source/port", nil, []request{with()}},
		{"property:connection/mtls", nil, []request{with()}},
		{"property:request/headers", nil, []request{with()}},
		{"property:no/such", nil, []request{with()}},
	}
	var parts []string
	for _, source := range sources {
		parts = append(parts, source.part)
	}
	s := serveKeys(t, envoytest.Listener{}, "", parts...)
	http1, http2 := s.client(t), envoytest.NewClient(t, s.addr, envoytest.ClientOptions{HTTP2: true})
	for _, source := range sources {
		send := func(r request) envoytest.Response {
			client := http1
			if r.http2 {
				client = http2
			}
			end := "a"
			if r.end != "" {
				end = r.end
			}
			return client.Get(t, s.path(source.part, end)+r.query, r.headers...)
		}
		t.Run(source.part, func(t *testing.T) {
			for _, client := range source.clients {
				for i, r := range client {
					if n := used(t, send(r)); n != i+1 {
						t.Errorf("%+v is the client's request %d, want %d", r, n, i+1)
					}
				}
			}
			for _, r := range source.lacking {
				response := send(r)
				expectAdmitted(t, response)
				if left := response.Header.Values("RateLimit-Remaining"); len(left) > 0 {
					t.Errorf("%+v is counted, want it to lack the part", r)
				}
			}
		})
	}
}

func TestMetadataIsReadByItsType(t *testing.T) {
	const filter = "test.metadata"
	values := envoytest.Object{
		"text": "a", "eight": "12345678", "empty": "", "digits": "42", "whole": 42, "negative": -7, "zero": 0, "half": 0.5, "large": 1e300,
		"true": true, "null": nil, "list": []any{"a"}, "a/b": "slash",
		"object": envoytest.Object{"text": "deep", "whole": 5, "object": envoytest.Object{"text": "deeper"}},
	}
	strings := map[string]string{
		"text": "a", "eight": "12345678", "digits": "42", "a~1b": "slash", "object/text": "deep", "object/object/text": "deeper",
		"empty": "", "whole": "", "half": "", "true": "", "null": "", "list": "", "list/0": "", "object": "", "object/whole": "", "none": "", "text/a": "", "object/none": "",
	}
	numbers := map[string]string{
		"whole": "42", "negative": "-7", "zero": "0", "object/whole": "5",
		"half": "", "large": "", "text": "", "eight": "", "digits": "", "true": "", "null": "", "list": "", "object": "", "none": "",
	}
	// Of each part's two rules the first holds where it has another value, the
	// second where it has its own; where that is to be missing, always.
	limit := envoytest.Object{"algorithm": "token_bucket", "capacity": capacity, "refill_rate": "1/d", "missing": "skip"}
	limits, rules := envoytest.Object{}, []envoytest.Object{}
	wants := map[string]string{} // by path
	for kind, want := range map[string]map[string]string{"metadata": strings, "metadata_number": numbers} {
		for steps, want := range want {
			part := kind + ":" + filter + "/" + steps
			name := fmt.Sprint("limit-", len(limits))
			path := "/" + name
			wants[path] = want
			l := envoytest.Object{"key": []string{part}}
			for field, value := range limit {
				l[field] = value
			}
			limits[name] = l
			rules = append(rules,
				envoytest.Object{"match": envoytest.Object{"path": path, "value": envoytest.Object{part: "1000"}}, "limits": []string{}},
				envoytest.Object{"match": envoytest.Object{"path": path}, "limits": []string{name}})
			if want != "" {
				rules[len(rules)-1]["match"].(envoytest.Object)["value"] = envoytest.Object{part: want}
			}
		}
	}
	config, err := json.Marshal(envoytest.Object{"limits": limits, "rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, string(config), envoytest.Listener{Filters: filters{envoytest.SetMetadata(filter, values)}})
	client := s.client(t)
	for path, want := range wants {
		response := client.Get(t, path)
		expectAdmitted(t, response)
		if present := len(response.Header.Values("RateLimit-Limit")) > 0; present != (want != "") {
			t.Errorf("%s: present is %v, want the value %q", limits[path[1:]].(envoytest.Object)["key"], present, want)
		}
	}
}

func TestAClaimThatEnvoyHasVerifiedIsAnIdentity(t *testing.T) {
	const payload = "envoy.filters.http.jwt_authn/payload/"
	const sub, level, roles, unit = "user=metadata:" + payload + "sub", "metadata_number:" + payload + "level",
		"metadata:" + payload + "roles", "metadata:" + payload + "https:~1~1issuer.test~1unit"
	s := serveKeys(t, envoytest.Listener{Filters: filters{envoytest.JWTAuthn()}}, "", sub, level, roles, unit)
	client := s.client(t)
	bearer := func(claims envoytest.Object) string { return "authorization: Bearer " + envoytest.Token(t, claims) }
	alice := bearer(envoytest.Object{"sub": "alice", "level": 3, "roles": []string{"a"}, "https://issuer.test/unit": "ops"})
	for i := range 3 {
		// The same user with another token is the same client.
		again := bearer(envoytest.Object{"sub": "alice", "jti": fmt.Sprint(i)})
		if n := used(t, client.Get(t, s.path(sub, "a"), again)); n != i+1 {
			t.Errorf("alice has made %d requests, want %d", n, i+1)
		}
	}
	if n := used(t, client.Get(t, s.path(sub, "a"), bearer(envoytest.Object{"sub": "bob"}))); n != 1 {
		t.Errorf("bob has made %d requests, want 1", n)
	}
	for _, part := range []string{level, unit} {
		if n := used(t, client.Get(t, s.path(part, "a"), alice)); n != 1 {
			t.Errorf("%s: %d requests, want 1", part, n)
		}
	}
	expectNoLimit(t, client.Get(t, s.path(roles, "a"), alice))
	expectNoLimit(t, client.Get(t, s.path(sub, "a")))
	// Whoever makes a token up does not come so far.
	if r := client.Get(t, s.path(sub, "a"), alice+"x"); r.Status != 401 {
		t.Errorf("a token with a bad signature got status %d", r.Status)
	}
}

func TestTheClientsAddressIsReadWhereTheConfigSays(t *testing.T) {
	// A limit for each address that a request may be from; the size says which.
	const envoys = 101 // the peer's address, which is Envoy's own answer
	addresses := map[string]int{
		"127.0.0.1": envoys, "203.0.113.9": 102, "198.51.100.7": 103, "198.51.100.8": 104, "2001:db8::1": 105, "10.0.0.1": 106,
	}
	limits, rules := envoytest.Object{}, []envoytest.Object{}
	for address, size := range addresses {
		name := fmt.Sprint("limit-", size)
		limits[name] = envoytest.Object{"algorithm": "token_bucket", "capacity": size, "refill_rate": "1/d", "key": []string{"ip"}}
		rules = append(rules, envoytest.Object{"match": envoytest.Object{"ip": address}, "limits": []string{name}})
	}
	const chain = "x-client-chain" // which Envoy leaves alone
	for _, mode := range []struct {
		clientIP envoytest.Object
		requests map[string][]string // the headers by the address that they are to mean
	}{
		{envoytest.Object{"source": "envoy"}, map[string][]string{
			"127.0.0.1": {"x-forwarded-for: 198.51.100.7, 203.0.113.9"},
		}},
		{envoytest.Object{"source": "header", "header": chain, "trusted_hops": 1}, map[string][]string{
			"203.0.113.9":  {chain + ": 198.51.100.7, 203.0.113.9"},
			"198.51.100.8": {chain + ": unknown, 198.51.100.8:4711"},
			"198.51.100.7": {chain + ": 203.0.113.9", chain + ": 198.51.100.7"},
			"2001:db8::1":  {chain + ": 203.0.113.9, [2001:DB8::0001]:443"},
			"127.0.0.1":    {chain + ": 203.0.113.9, unknown"},
		}},
		{envoytest.Object{"source": "header", "header": chain, "trusted_hops": 2}, map[string][]string{
			"198.51.100.7": {chain + ": 198.51.100.7, 203.0.113.9"},
			"203.0.113.9":  {chain + ": 198.51.100.7, 203.0.113.9", chain + ": 198.51.100.8"},
			"127.0.0.1":    {chain + ": 203.0.113.9"},
		}},
		{envoytest.Object{"source": "header", "header": chain, "trusted_hops": 3}, map[string][]string{
			"127.0.0.1": {chain + ": 198.51.100.7, 203.0.113.9"},
		}},
		{envoytest.Object{"source": "header", "header": chain, "trusted_proxies": []string{"10.0.0.0/8", "198.51.100.8"}}, map[string][]string{
			"203.0.113.9":  {chain + ": 198.51.100.7, 203.0.113.9, 10.1.2.3, 198.51.100.8"},
			"198.51.100.7": {chain + ": 198.51.100.7", chain + ": 10.1.2.3"},
			"10.0.0.1":     {chain + ": 10.0.0.1, 10.0.0.2"},
			"127.0.0.1":    {chain + ": 198.51.100.7, unknown, 10.0.0.2"},
		}},
		// Under use_remote_address Envoy has appended its peer, which is one more
		// hop; of a peer on the loopback interface it appends its own address.
		{envoytest.Object{"source": "header", "header": "x-forwarded-for", "trusted_hops": 2}, map[string][]string{
			"203.0.113.9":  {"x-forwarded-for: 198.51.100.7, 203.0.113.9"},
			"198.51.100.7": {"x-forwarded-for: 203.0.113.9", "x-forwarded-for: 198.51.100.7"},
			"127.0.0.1":    {"x-other: 203.0.113.9"},
		}},
		{envoytest.Object{"source": "header", "header": "x-forwarded-for", "trusted_hops": 3}, map[string][]string{
			"198.51.100.7": {"x-forwarded-for: 198.51.100.7, 203.0.113.9"},
		}},
	} {
		config, err := json.Marshal(envoytest.Object{"client_ip": mode.clientIP, "limits": limits, "rules": rules})
		if err != nil {
			t.Fatal(err)
		}
		client := serve(t, string(config), envoytest.Listener{}).client(t)
		for address, headers := range mode.requests {
			response := client.Get(t, "/", headers...)
			expectAdmitted(t, response)
			if got := number(t, response, "RateLimit-Limit"); got != addresses[address] {
				t.Errorf("%v: %q was counted under the limit of %d, want that of %s, %d", mode.clientIP, headers, got, address, addresses[address])
			}
		}
	}
}

func TestNetworksAreAsWideAsTheConfigSays(t *testing.T) {
	s := serveKeys(t, envoytest.Listener{}, `"client_ip": {"source": "header", "header": "x-client", "trusted_hops": 1, "ipv4_prefix": 24, "ipv6_prefix": 48},`, "ip")
	client := s.client(t)
	for _, network := range [][]string{
		{"192.0.2.1", "192.0.2.255", "::ffff:192.0.2.7"}, {"192.0.3.1"},
		{"2001:db8:1:2::1", "2001:db8:1:3::1"}, {"2001:db8:2::1"}, {"c000:200::", "c000:200:0:1::"},
	} {
		for i, address := range network {
			if n := used(t, client.Get(t, s.path("ip", "a"), "x-client: "+address)); n != i+1 {
				t.Errorf("%s made request %d of its network, want %d", address, n, i+1)
			}
		}
	}
}
