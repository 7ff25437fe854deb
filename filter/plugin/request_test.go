//go:build !wasip1

package plugin

import (
	"encoding/binary"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/keys"
)

var _ keys.Request = (*request)(nil)

func requestOf(list ...[2]string) *request {
	return &request{allHeaders: true, known: headers, headers: host.ParsePairs(host.AppendPairs(nil, list))}
}

// withProperties makes the host have these properties only, and counts how often
// each is asked for.
func withProperties(t *testing.T, properties map[string]string) (asked map[string]int) {
	asked = map[string]int{}
	host.Stub.Property = func(path string) ([]byte, host.Status) {
		asked[path]++
		value, ok := properties[path]
		if !ok {
			return nil, host.NotFound
		}
		return []byte(value), host.OK
	}
	t.Cleanup(func() { host.Stub = host.Stubs{} })
	return asked
}

func TestAHeaderSentMoreThanOnceIsItsValuesJoined(t *testing.T) {
	r := requestOf([2]string{"a", "1"}, [2]string{"b", "x"}, [2]string{"a", "2"}, [2]string{"b", "y"}, [2]string{"a", ""}, [2]string{"c", ""})
	for name, want := range map[string]string{"a": "1,2,", "b": "x,y", "c": "", "d": ""} {
		if got := string(r.Header(name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	// Asking for both in turn, as a key of two parts does.
	a, b := r.Header("a"), r.Header("b")
	if string(a) != "1,2," || string(b) != "x,y" {
		t.Errorf("got %q and %q: one header's value ran over the other's", a, b)
	}
}

func TestTheFirstOfSeveralCookiesCountsInWhicheverLineItIs(t *testing.T) {
	r := requestOf([2]string{"cookie", "a=1; b=2"}, [2]string{"x", "c=0"}, [2]string{"cookie", "c=3; a=4"}, [2]string{"cookie", "d="})
	for name, want := range map[string]string{"a": "1", "b": "2", "c": "3", "d": "", "x": "", "A": ""} {
		if got := string(r.Cookie(name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestQueryParametersOfOneRequestDoNotRunIntoEachOther(t *testing.T) {
	r := requestOf([2]string{":path", "/x?a=1%31&b=+2&a=3"})
	a, b, c := r.Query("a"), r.Query("b"), r.Query("c")
	if string(a) != "11" || string(b) != " 2" || len(c) != 0 {
		t.Errorf("got %q, %q and %q", a, b, c)
	}
}

func TestTokensInSeveralLinesAreNobodysOwn(t *testing.T) {
	for _, c := range []struct {
		want  string
		lines []string
	}{
		{"", nil}, {"abc", []string{"Bearer abc"}}, {"", []string{"Basic abc"}},
		{",", []string{"Bearer abc", "Bearer def"}}, {",", []string{"Basic abc", "bearer def"}}, {",", []string{"Bearer abc,Bearer def"}},
	} {
		var list [][2]string
		for _, line := range c.lines {
			list = append(list, [2]string{"authorization", line})
		}
		if got := string(requestOf(list...).Bearer()); got != c.want {
			t.Errorf("%q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestTheClientsAddressIsFoundAsTheConfigSays(t *testing.T) {
	const envoys = "192.0.2.99"
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	byHops := func(n int) config.ClientIP { return config.ClientIP{Header: "x-forwarded-for", TrustedHops: n} }
	byProxies := config.ClientIP{Header: "x-forwarded-for", TrustedProxies: trusted}
	list := []string{"198.51.100.7, 203.0.113.9"}
	for _, c := range []struct {
		clientIP config.ClientIP
		lines    []string
		want     string
	}{
		{config.ClientIP{}, list, envoys},
		{byHops(1), list, "203.0.113.9"},
		{byHops(2), list, "198.51.100.7"},
		{byHops(3), list, envoys},
		{byHops(1), nil, envoys},
		{byHops(1), []string{""}, envoys},
		{byHops(1), []string{"unknown, 203.0.113.9:4711"}, "203.0.113.9"},
		{byHops(2), []string{"unknown, 203.0.113.9:4711"}, envoys},
		{byHops(1), []string{"198.51.100.7", "203.0.113.9"}, "203.0.113.9"},
		{byHops(2), []string{"198.51.100.7", "203.0.113.9"}, "198.51.100.7"},
		{byHops(2), []string{"198.51.100.7, 203.0.113.8", "203.0.113.9"}, "203.0.113.8"},
		{byProxies, list, "203.0.113.9"},
		{byProxies, []string{"198.51.100.7, 203.0.113.9", "10.0.0.1, 10.0.0.2"}, "203.0.113.9"},
		{byProxies, []string{"10.0.0.3, 10.0.0.1"}, "10.0.0.3"},
		{byProxies, []string{"unknown, 10.0.0.1"}, envoys},
		{byProxies, nil, envoys},
		{config.ClientIP{Header: "true-client-ip", TrustedHops: 1}, list, envoys},
	} {
		withProperties(t, map[string]string{"source\x00address": envoys + ":4711"})
		var pairs [][2]string
		for _, line := range c.lines {
			pairs = append(pairs, [2]string{"x-forwarded-for", line})
		}
		r := requestOf(pairs...)
		r.clientIP = c.clientIP
		if got, ok := r.Address(); got != netip.MustParseAddr(c.want) || !ok {
			t.Errorf("%+v of %q: got %v, want %s", c.clientIP, c.lines, got, c.want)
		}
	}
}

func TestAPeerWithoutAnAddressHasNone(t *testing.T) {
	for _, peer := range []string{"", "@/var/run/envoy.sock", "/run/x.sock"} {
		withProperties(t, map[string]string{"source\x00address": peer})
		if got, ok := requestOf().Address(); ok {
			t.Errorf("%q: got %v", peer, got)
		}
	}
}

// message writes a field of a protobuf message; entry an entry of a map.
func message(number byte, content string) string {
	return string(append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content))), content...))
}

func entry(key, value string) string { return message(1, message(1, key)+message(2, value)) }

func TestMetadataIsReadWithItsTypes(t *testing.T) {
	double := func(f float64) string {
		return string(binary.LittleEndian.AppendUint64([]byte{2<<3 | 1}, math.Float64bits(f)))
	}
	asked := withProperties(t, map[string]string{"metadata": entry("jwt",
		entry("sub", message(3, "alice"))+entry("id", double(42))+entry("half", double(0.5))+
			entry("claims", message(5, entry("org/unit", message(3, "ops"))+entry("level", double(-7)))))})
	r := requestOf()
	for path, want := range map[string][2]string{
		"jwt\x00sub":                {"alice", ""},
		"jwt\x00id":                 {"", "42"},
		"jwt\x00half":               {"", ""},
		"jwt\x00claims":             {"", ""},
		"jwt\x00claims\x00org/unit": {"ops", ""},
		"jwt\x00claims\x00level":    {"", "-7"},
		"jwt\x00none":               {"", ""},
		"none\x00sub":               {"", ""},
	} {
		if got := [2]string{string(r.Metadata(path)), string(r.MetadataNumber(path))}; got != want {
			t.Errorf("%q: got %q as a string and a number, want %q", path, got, want)
		}
	}
	if asked["metadata"] != 1 || len(asked) != 1 {
		t.Errorf("one request asked the host for %v", asked)
	}
}

func TestAPropertyIsAStringOrMissing(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for value, want := range map[string]string{
		"a": "a", "Zürich, :/": "Zürich, :/", "12345678": "12345678", long: long,
		"": "", "\x00": "", "\x01": "", "*\x00\x00\x00\x00\x00\x00\x00": "", "\x00\x00\x00\x00\x00\x00E@": "", "\n\x03abc": "", "a\x7f": "", "a\xff": "", "a\tb": "",
	} {
		asked := withProperties(t, map[string]string{"a\x00b": value})
		r := requestOf()
		if got := string(r.Property("a\x00b")); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
		if again := string(r.Property("a\x00b")); again != want || asked["a\x00b"] != 1 {
			t.Errorf("asked again, %q is %q after %d hostcalls", value, again, asked["a\x00b"])
		}
		if other := r.Property("a"); other != nil {
			t.Errorf("a property that is not there is %q", other)
		}
	}
}

func TestNothingOfARequestIsLeftForTheNext(t *testing.T) {
	properties := map[string]string{"xds\x00route_name": "one", "xds\x00virtual_host_name": "one", "p": "one", "source\x00address": "192.0.2.1",
		"metadata": entry("f", entry("a", message(3, "one")))}
	withProperties(t, properties)
	read := func(r *request) string {
		address, _ := r.Address()
		return strings.Join([]string{string(r.Route()), string(r.VirtualHost()), string(r.Property("p")), string(r.Metadata("f\x00a")), string(r.Rule()),
			address.String()}, " ")
	}
	var r request
	r.begin(true)
	r.rule = "one"
	if got := read(&r); got != "one one one one one 192.0.2.1" {
		t.Errorf("read %q", got)
	}
	clear(properties)
	r.begin(true)
	if got := read(&r); got != "     invalid IP" {
		t.Errorf("read %q of a request that has nothing", got)
	}
}

func TestReadingARequestDoesNotAllocate(t *testing.T) {
	value := []byte(entry("f", entry("a", message(3, "one"))+entry("n", string(append([]byte{2<<3 | 1}, make([]byte, 8)...)))))
	host.Stub.Property = func(string) ([]byte, host.Status) { return value, host.OK }
	t.Cleanup(func() { host.Stub = host.Stubs{} })
	r := requestOf([2]string{":path", "/a?q=%41"}, [2]string{":authority", "A:1"}, [2]string{"cookie", "a=b; c=d"}, [2]string{"a", "1"}, [2]string{"a", "2"},
		[2]string{"authorization", "Bearer x"}, [2]string{"x-forwarded-for", "[2001:db8:1:2:3:4:5:6]:443, 10.0.0.1"})
	r.clientIP = config.ClientIP{Header: "x-forwarded-for", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if n := testing.AllocsPerRun(100, func() {
		list := r.headers
		r.begin(true)
		r.headers, r.known, r.rule = list, headers, "rule"
		r.Address()
		r.Header("a")
		r.Path()
		r.Host()
		r.Route()
		r.VirtualHost()
		r.Rule()
		r.Cookie("c")
		r.Query("q")
		r.Bearer()
		r.Metadata("f\x00a")
		r.MetadataNumber("f\x00n")
		r.Property("p")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Envoy's own rule, Grpc::Common::hasGrpcContentType.
func TestARequestIsGRPCWhereEnvoySaysSo(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc+json": true, "application/grpc+": true,
		"application/grpc-web": false, "application/grpc; charset=utf-8": false, "application/grpc,text/plain": false, "Application/GRPC": false,
		"application/grp": false, "text/application/grpc": false, "": false,
	} {
		if got := requestOf([2]string{"content-type", contentType}).isGRPC(); got != want {
			t.Errorf("%q: got %v", contentType, got)
		}
	}
}
