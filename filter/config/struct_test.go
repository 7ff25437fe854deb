package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

// asStruct is the document, a JSON object, as Envoy hands over a Struct.
func asStruct(t testing.TB, document string) []byte {
	t.Helper()
	var s structpb.Struct
	if err := s.UnmarshalJSON([]byte(document)); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return marshal(t, &s)
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// sameOutcome checks that two documents become one Config or the same mistakes,
// in whatever order.
func sameOutcome(t testing.TB, a, b []byte) {
	t.Helper()
	configA, errA := Parse(a)
	configB, errB := Parse(b)
	if !reflect.DeepEqual(configA, configB) {
		t.Errorf("%q\nis     %+v\nand is %+v", a, configA, configB)
	}
	if linesA, linesB := sortedLines(errA), sortedLines(errB); !slices.Equal(linesA, linesB) {
		t.Errorf("%q\nhas the mistakes\n%s\nand\n%s", a, strings.Join(linesA, "\n"), strings.Join(linesB, "\n"))
	}
}

func sortedLines(err error) []string {
	var lines Mistakes
	if errors.As(err, &lines) {
		slices.Sort(lines)
	}
	return lines
}

func TestAStructIsTheSameConfigAsItsJSON(t *testing.T) {
	for _, document := range []string{
		readExample(t, "smallest.json"), readExample(t, "full.json"), readExample(t, "fuller.json"),
		`{"limits": {"a": {"charge": {"max": 1e3, "metadata": "f/a~1b"}, "count_status": ["1xx", "500"], "scope": "process", "algorithm": "gcra", "rate": 1, "key": []}}}`,
		`{"limits": {"a": {"max_wait": "1s", "mode": "queue", "leak_rate": 2, "capacity": 5.0, "algorithm": "leaky_bucket", "key": []}}, "rules": [{"limits": ["a"]}], "always": ["a"]}`,
		`{"limits": {"a": {"algorithm": "gcra", "rate": 0.5, "burst": 1e3, "key": []}}, "on_error": "deny", "rules": [{"limits": ["a"], "response": {"body": ""}}]}`,
		`{"global": {"on_failure": "deny", "timeout": "1s", "lease": 0.3, "mode": "lease", "cluster": "c", "protocol": "rls"}, "limits": {"a": {"scope": "global", "window": "1h", "limit": 5, "algorithm": "fixed_window", "key": []}}}`,
		`{"limits": {}, "response": {"body": "Подождите \" \u0000"}, "route_metadata": true, "shadow": false}`,
		`{"limits": {}, "exempt": [{"headers": {"b": "1", "A": {"not": "2"}}, "value": {"metadata_number:f/a": [1, -5]}}]}`,
	} {
		mustParse(t, document)
		sameOutcome(t, []byte(document), asStruct(t, document))
	}
}

func TestAStructHasTheSameMistakesAsItsJSON(t *testing.T) {
	for _, document := range []string{
		`{"limits": {"a": {"algorithm": "gcra", "rate": "5/fortnight", "burst": 1.5, "key": ["Ip", null, {}]}}, "always": ["b"], "rulez": []}`,
		`{"limits": {"Login": 5, "b": {}}, "rules": [{"limits": [{"limit": "b", "cost": -1}, true]}], "state": {"max_buckets": 1e+21}}`,
		`{"namespace": "` + strings.Repeat("x", 300) + `"}`,
		`{"limits": {"a": {"charge": {"remove": 1, "max": 1.5, "metadata": "f"}, "count_status": [401, "6xx"], "scope": "global", "algorithm": "gcra", "rate": 1, "key": []}}}`,
		`{"limits": {"a": {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": 2, "key": []}, "b": {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": 2, "key": []}},
		  "rules": [{"limits": ["b"]}, {"limits": ["a", "b"]}], "always": ["a"]}`,
		`{"global": {"timeout": 1, "lease": 1.5, "protocol": "RLS"}, "limits": {"a": {"scope": "global", "window": "1y", "limit": 5, "algorithm": "fixed_window", "key": []}}}`,
		`{"global": {"cluster": "c", "protocol": "rls"}, "limits": {"a": {"scope": "global", "window": "1y", "limit": 5, "algorithm": "fixed_window", "key": [], "count_status": ["5xx"]}}}`,
		`{"": {"": [[[]]]}}`,
		`{"rules": [{"limits": ["a"], "match": {"headers": {"X-A": "b", "x-a": "c"}}}]}`,
	} {
		if _, err := Parse([]byte(document)); err == nil {
			t.Fatalf("%s is accepted", document)
		}
		sameOutcome(t, []byte(document), asStruct(t, document))
	}
}

func TestAStructsMistakesAreInOrderOfTheirPaths(t *testing.T) {
	c, err := Parse(asStruct(t, `{"rules": [5, 6], "limits": {"b": 1, "a": 2}, "allways": 3}`))
	want := `allways: no such field; did you mean "always"?
limits.a: the number 2: want an object such as {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}
limits.b: the number 1: want an object such as {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}
rules[0]: the number 5: want an object such as {"limits": ["login"]}
rules[1]: the number 6: want an object such as {"limits": ["login"]}`
	if c != nil || err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestNumbersThatAreNoneAreRefused(t *testing.T) {
	for f, text := range map[float64]string{math.Inf(1): "Inf", math.Inf(-1): "-Inf", math.NaN(): "NaN", 5e300: "5e+300", -0.5: "-0.5"} {
		limit := map[string]*structpb.Value{
			"algorithm": structpb.NewStringValue("token_bucket"), "key": structpb.NewListValue(&structpb.ListValue{}),
			"capacity": structpb.NewNumberValue(f), "refill_rate": structpb.NewNumberValue(f),
		}
		limits := &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStructValue(&structpb.Struct{Fields: limit})}}
		_, err := Parse(marshal(t, &structpb.Struct{Fields: map[string]*structpb.Value{"limits": structpb.NewStructValue(limits)}}))
		if err == nil || !strings.Contains(err.Error(), "limits.x.capacity: "+text+": want a whole number") || !strings.Contains(err.Error(), "limits.x.refill_rate: "+text+": want ") {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// message is a protobuf message of these fields, each of which is encoded.
func message(fields ...[]byte) []byte { return slices.Concat(fields...) }

// part is a length-delimited field.
func part(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

func TestABrokenStructIsRefusedAndNeverRead(t *testing.T) {
	const broken = "document: a google.protobuf.Struct in its binary form, but broken: want it as it was encoded"
	whole := asStruct(t, `{"limits": {"per-ip": `+bucket+`}}`)
	for cut := bytes.IndexByte(whole, byte(entryValue)) + 1; cut < len(whole); cut++ {
		if c, err := Parse(whole[:cut]); c != nil || err == nil || err.Error() != broken {
			t.Fatalf("cut to %d bytes: %+v, %v", cut, c, err)
		}
	}
	entry := func(value []byte) []byte { return part(1, message(part(1, []byte("limits")), part(2, value))) }
	for what, document := range map[string][]byte{
		"an unknown field":          message(entry(nil), part(2, nil)),
		"an entry with a third":     part(1, message(part(1, []byte("limits")), part(2, nil), part(3, nil))),
		"a key that is a number":    part(1, message(part(2, nil), protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 5))),
		"a key that is not UTF-8":   part(1, message(part(1, []byte("\xff")), part(2, nil))),
		"a text that is not UTF-8":  entry(part(3, []byte("\xff"))),
		"a value of an unknown":     entry(part(7, nil)),
		"a value of two kinds":      entry(message(part(3, nil), part(5, nil))),
		"a number of four bytes":    entry(protowire.AppendFixed32(protowire.AppendTag(nil, 2, protowire.Fixed32Type), 5)),
		"a text that is a number":   entry(protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 5)),
		"a group":                   entry(protowire.AppendTag(nil, 5, protowire.StartGroupType)),
		"a list of something else":  entry(part(6, part(2, nil))),
		"a length beyond the end":   message(entry(nil), []byte{0x0a, 0x7f}),
		"a length beyond an int":    message(entry(nil), []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
		"a varint without an end":   entry(append(protowire.AppendTag(nil, 4, protowire.VarintType), 0x80)),
		"a varint that is too long": entry(append(protowire.AppendTag(nil, 4, protowire.VarintType), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...)),
	} {
		if c, err := Parse(document); c != nil || err == nil || err.Error() != broken {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
}

func TestWhatAStructLeavesOutIsNull(t *testing.T) {
	for what, document := range map[string][]byte{
		"no value at all":       message(part(1, part(1, []byte("limits"))), part(1, message(part(1, []byte("rules")), part(2, nil)))),
		"an empty value":        part(1, message(part(1, []byte("limits")), part(2, nil))),
		"null as it is":         part(1, message(part(1, []byte("limits")), part(2, []byte{8, 0}))),
		"the value comes first": part(1, message(part(2, []byte{8, 0}), part(1, []byte("limits")))),
	} {
		_, err := Parse(document)
		if err == nil || !strings.HasPrefix(err.Error(), "limits: null: want an object of limits by their names") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := Parse(message(part(1, message(part(1, []byte("limits")), part(2, part(5, nil)))), part(1, message(part(1, []byte("limits")), part(2, part(5, nil))))))
	if err == nil || err.Error() != "limits: stands twice in one object: keep one" {
		t.Errorf("twice: %v", err)
	}
}

func TestADeepStructIsRefusedBeforeItEndsTheStack(t *testing.T) {
	nested := func(levels int) []byte {
		value := &structpb.Value{}
		for range levels - 1 {
			value = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{value}})
		}
		return marshal(t, &structpb.Struct{Fields: map[string]*structpb.Value{"limits": structpb.NewStructValue(&structpb.Struct{}), "$schema": value}})
	}
	if _, err := Parse(nested(maxDepth)); err != nil {
		t.Error(err)
	}
	for _, levels := range []int{maxDepth + 1, 5_000} {
		_, err := Parse(nested(levels))
		if want := "$schema" + strings.Repeat("[0]", maxDepth-1) + ": nested too deep: want no more than 16 levels"; err == nil || err.Error() != want {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

func TestAVeryLargeStructIsRefused(t *testing.T) {
	document := asStruct(t, `{"limits": {}, "$schema": "`+strings.Repeat("x", MaxDocument)+`"}`)
	if _, err := Parse(document); err == nil || !strings.HasSuffix(err.Error(), "bytes long: want no more than 1048576") {
		t.Error(err)
	}
}

func TestAnyDocumentIsTheSameAsJSONAndAsAStruct(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree := drawDocument(rt)
		document, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		s, err := structpb.NewStruct(tree)
		if err != nil {
			t.Fatal(err)
		}
		sameOutcome(t, document, marshal(t, s))
		if _, err := Parse(document); err == nil {
			if err := validate(t, string(document)); err != nil {
				t.Errorf("%s\nis accepted but does not fit the schema:\n%v", document, err)
			}
		}
	})
}

// drawDocument takes a right document and puts something else in some places.
func drawDocument(t *rapid.T) map[string]any {
	text, err := os.ReadFile(filepath.Join("testdata", rapid.SampledFrom([]string{"smallest.json", "fuller.json", "full.json"}).Draw(t, "document")))
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	other := rapid.Map(rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `1`, `-1`, `1.5`, `1e9`, `1e10`, `1e20`, `""`, `"x"`, `"ip"`, `"1/s"`, `"10.0.0.0/8"`, `[]`, `["a", 5]`, `{}`, `{"x": "y"}`,
	}), func(text string) (value any) {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return value
	})
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		change(t, tree, other)
	}
	return tree
}

// change puts another value somewhere under tree, or takes one away.
func change(t *rapid.T, tree map[string]any, other *rapid.Generator[any]) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range tree {
			if !yield(name) {
				return
			}
		}
	})
	if len(names) == 0 {
		tree["new"] = other.Draw(t, "value")
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "name")
	switch child := tree[name].(type) {
	case map[string]any:
		if rapid.Bool().Draw(t, "deeper") {
			change(t, child, other)
			return
		}
	case []any:
		if len(child) > 0 {
			i := rapid.IntRange(0, len(child)-1).Draw(t, "element")
			if object, ok := child[i].(map[string]any); ok && rapid.Bool().Draw(t, "deeper") {
				change(t, object, other)
			} else {
				child[i] = other.Draw(t, "value")
			}
			return
		}
	}
	if rapid.Bool().Draw(t, "take away") {
		delete(tree, name)
	} else {
		tree[name] = other.Draw(t, "value")
	}
}
