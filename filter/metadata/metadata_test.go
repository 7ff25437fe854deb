package metadata

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// message writes a field of that number with this content.
func message(number uint64, content string) string {
	m := binary.AppendUvarint(nil, number<<3|lengthDelimited)
	return string(binary.AppendUvarint(m, uint64(len(content)))) + content
}

// entry writes an entry of a map, in field 1.
func entry(key, value string) string {
	return message(1, message(entryKey, key)+message(entryValue, value))
}

// number writes a Value that is a number.
func number(n float64) string {
	return string(binary.LittleEndian.AppendUint64([]byte{valueNumber<<3 | fixed64}, math.Float64bits(n)))
}

const (
	isNull = "\x08\x00"
	isTrue = "\x20\x01"
)

// one is the metadata of one filter.
func one(fields ...string) []byte { return []byte(entry("filter", strings.Join(fields, ""))) }

func TestOnlyAStringIsReadAsAString(t *testing.T) {
	m := append([]byte(entry("other", entry("text", message(valueString, "no")))), one(
		entry("text", message(valueString, "yes")),
		entry("empty", message(valueString, "")),
		entry("eight", message(valueString, "12345678")),
		entry("number", number(5)),
		entry("true", isTrue),
		entry("null", isNull),
		entry("list", message(6, message(1, message(valueString, "no")))),
		entry("object", message(valueStruct, entry("text", message(valueString, "deep"))+entry("a/b", message(valueString, "slash"))))+
			entry("", message(valueString, "nameless")),
	)...)
	for path, want := range map[string]string{
		"filter\x00text":           "yes",
		"filter\x00empty":          "",
		"filter\x00eight":          "12345678",
		"filter\x00object\x00text": "deep",
		"filter\x00object\x00a/b":  "slash",
		"filter\x00":               "nameless",
		"other\x00text":            "no",
	} {
		if got, ok := String(m, path); string(got) != want || !ok {
			t.Errorf("%q is %q, %v; want %q", path, got, ok, want)
		}
	}
	for _, path := range []string{
		"", "filter", "text", "none\x00text", "filter\x00none", "filter\x00tex", "filter\x00texts", "filter\x00number", "filter\x00true",
		"filter\x00null", "filter\x00list", "filter\x00list\x00", "filter\x00list\x000", "filter\x00object", "filter\x00object\x00none",
		"filter\x00text\x00", "filter\x00text\x00yes", "filter\x00number\x00x", "filter\x00object\x00text\x00x", "\x00text",
	} {
		if got, ok := String(m, path); ok {
			t.Errorf("%q is %q, want nothing", path, got)
		}
	}
}

func TestOnlyAWholeNumberIsReadAsANumber(t *testing.T) {
	for n, want := range map[float64]int64{
		0: 0, 5: 5, -5: -5, math.Copysign(0, -1): 0, 1e15: 1e15, MaxWhole: MaxWhole, -MaxWhole: -MaxWhole,
	} {
		if got, ok := Whole(one(entry("n", number(n))), "filter\x00n"); got != want || !ok {
			t.Errorf("%v is %d, %v", n, got, ok)
		}
	}
	for _, value := range []string{
		number(1.5), number(-0.1), number(MaxWhole + 1), number(-MaxWhole - 1), number(1e300), number(math.Inf(1)), number(math.Inf(-1)),
		number(math.NaN()), message(valueString, "5"), message(valueString, "12345678"), isTrue, isNull, message(6, ""), message(valueStruct, ""), "",
	} {
		if got, ok := Whole(one(entry("n", value)), "filter\x00n"); ok {
			t.Errorf("%q is the number %d", value, got)
		}
	}
}

func TestFieldsOfOtherKindsArePassedOver(t *testing.T) {
	others := "\x48\xff\x01" + // field 9, a varint
		"\x49........" + // 64 bits
		"\x4d...." + // 32 bits
		message(9, entry("filter", entry("a", message(valueString, "no")))) +
		"\x08\x05" // field 1, but a varint
	m := []byte(others + entry("filter", others+entry("a", others+message(valueString, "yes"))))
	if got, ok := String(m, "filter\x00a"); string(got) != "yes" || !ok {
		t.Errorf("got %q, %v", got, ok)
	}
}

func TestADamagedMessageEndsWhereTheDamageIs(t *testing.T) {
	whole := one(entry("a", message(valueString, "text")))
	for n := range whole {
		if got, ok := String(whole[:n], "filter\x00a"); ok {
			t.Errorf("%q has %q", whole[:n], got)
		}
	}
	for _, damage := range []string{
		"\x0b", "\x0c", "\x0e", "\x80", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x09...", "\x0d..", "\x08\x80",
	} {
		if got, ok := String([]byte(damage+string(whole)), "filter\x00a"); ok {
			t.Errorf("behind %q there is %q", damage, got)
		}
	}
}

func TestFindingDoesNotAllocate(t *testing.T) {
	m := one(entry("a", message(valueStruct, entry("b", message(valueString, "c")))), entry("n", number(5)))
	if n := testing.AllocsPerRun(100, func() {
		String(m, "filter\x00a\x00b")
		Whole(m, "filter\x00n")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzString(f *testing.F) {
	f.Add(one(entry("a", message(valueString, "b"))), "filter\x00a")
	f.Add(one(entry("a", message(valueStruct, entry("b", message(valueString, "c"))))), "filter\x00a\x00b")
	f.Add([]byte("\x0a\x05\x0a\x03abc"), "abc\x00")
	f.Fuzz(func(t *testing.T, m []byte, path string) {
		if got, ok := String(m, path); ok && !strings.Contains(string(m), string(got)) {
			t.Errorf("%q has %q at %q, which is not in it", m, got, path)
		}
		if n, ok := Whole(m, path); ok && (n > MaxWhole || n < -MaxWhole) {
			t.Errorf("%q has %d at %q", m, n, path)
		}
	})
}
