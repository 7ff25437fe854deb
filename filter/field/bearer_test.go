package field

import (
	"bytes"
	"testing"
)

func TestABearerTokenIsReadWhateverTheSchemesCase(t *testing.T) {
	for line, want := range map[string]string{
		"Bearer abc.def-_~+/==": "abc.def-_~+/==",
		"bearer abc":            "abc",
		"BEARER   abc":          "abc",
		"bEaReR\tabc ":          "abc",
		"Bearer 1|abc":          "1|abc",
		"Bearer":                "",
		"Bearer ":               "",
		"":                      "",
		"Bearers abc":           "",
		"Bearer:abc":            "",
		"Bear abc":              "",
		"Basic YWJj":            "",
		"xBearer abc":           "",
		"abc":                   "",
		`Digest realm="a", uri="/b", response="bearer"`: "",
	} {
		if got := string(Bearer([]byte(line))); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestNobodyGetsASecondBucketByMoreThanOneToken(t *testing.T) {
	for _, lines := range []string{
		"Bearer good,Bearer a", "Bearer a,Bearer good", "Bearer good, bearer b", "Basic YWJj,Bearer good", "Bearer good,Basic YWJj",
		"Bearer good,junk", "Bearer good,", ",Bearer good", "Bearer good x", "Bearer good\tx", "Bearer,Bearer good", "a,b,Bearer good,c",
	} {
		if got := Bearer([]byte(lines)); !bytes.Equal(got, Ambiguous) {
			t.Errorf("%q: got %q, want one and the same for all of them", lines, got)
		}
	}
}
