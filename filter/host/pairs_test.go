package host

import (
	"fmt"
	"testing"
)

func list(p Pairs) (all [][2]string) {
	for {
		name, value, rest, ok := p.Next()
		if !ok {
			return all
		}
		all, p = append(all, [2]string{string(name), string(value)}), rest
	}
}

func TestPairsAreReadAsTheyWereWritten(t *testing.T) {
	for _, headers := range [][][2]string{
		nil,
		{{":path", "/"}},
		{{"a", ""}, {"", "b"}, {"", ""}, {"a\x00b", "\x00"}, {"x", "длинный"}},
	} {
		if got := list(ParsePairs(AppendPairs(nil, headers))); fmt.Sprint(got) != fmt.Sprint(headers) {
			t.Errorf("got %q, want %q", got, headers)
		}
	}
}

func TestEveryPairOfANameIsFoundInOrder(t *testing.T) {
	p := ParsePairs(AppendPairs(nil, [][2]string{{"a", "1"}, {"b", "2"}, {"a", ""}, {"A", "3"}, {"a", "4"}}))
	if value, _, ok := p.Find("b"); string(value) != "2" || !ok {
		t.Errorf("b is %q, %v", value, ok)
	}
	if value, _, ok := p.Find("c"); ok {
		t.Errorf("c is %q", value)
	}
	var found []string
	for value, rest, ok := p.Find("a"); ok; value, rest, ok = rest.Find("a") {
		found = append(found, string(value))
	}
	if fmt.Sprintf("%q", found) != `["1" "" "4"]` {
		t.Errorf("a is %q", found)
	}
}

func TestReadingPairsDoesNotAllocate(t *testing.T) {
	serialized := AppendPairs(nil, [][2]string{{":method", "GET"}, {":path", "/"}, {"x-user", "42"}})
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		for p := ParsePairs(serialized); ; {
			name, _, rest, ok := p.Next()
			if !ok {
				return
			}
			if string(name) == "x-user" {
				found++
			}
			p = rest
		}
	}); n != 0 || found == 0 {
		t.Errorf("reading three pairs allocates %v times", n)
	}
}

func FuzzADamagedListEnds(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add(AppendPairs(nil, [][2]string{{"a", "b"}, {"c", "d"}}))
	f.Fuzz(func(t *testing.T, serialized []byte) {
		if got := list(ParsePairs(serialized)); len(got) > len(serialized) {
			t.Errorf("%d pairs in %d bytes", len(got), len(serialized))
		}
	})
}
