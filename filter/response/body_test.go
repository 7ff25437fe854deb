package response

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluice-proxy/sluice/algorithms"
)

func TestABodyArrivesByteForByte(t *testing.T) {
	for _, text := range []string{
		"",
		`{"ошибка":"Слишком много запросов. Повторите позже."}`,
		"Слишком много запросов\r\n\t“%s” \u2028 \U0001F6A6 & <b>\x00",
		"\"already \\\"escaped\\\" \\u0442\"",
	} {
		for _, kind := range []string{"application/json", "text/plain; charset=utf-8"} {
			if got := string(configured(withBody(text), withContentType(kind)).Refuse(refused(time.Second), false).Body); got != text {
				t.Errorf("%s: %q became %q", kind, text, got)
			}
		}
	}
}

func TestPlaceholdersAreFilledIn(t *testing.T) {
	r := &Refusal{Name: "login", Rule: "sign-in", Decision: algorithms.Decision{
		Limit: 50, Remaining: 3, Reset: 90 * time.Second, RetryAfter: 1500 * time.Millisecond,
	}}
	for text, want := range map[string]string{
		"{name}":        "login",
		"{rule}":        "sign-in",
		"{limit}":       "50",
		"{remaining}":   "3",
		"{reset}":       "90",
		"{retry_after}": "2",

		`{"limit":"{name}","retry":{retry_after}}`: `{"limit":"login","retry":2}`,
		"{limit}{limit}{remaining}":                "50503",
		"Подождите {retry_after} с":                "Подождите 2 с",
		"{{name}}":                                 "{login}",
		"{name{name}name}":                         "{nameloginname}",
		"{ {reset} }":                              "{ 90 }",
	} {
		if got := string(configured(withBody(text)).Refuse(r, false).Body); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestEveryOtherBraceIsLiteral(t *testing.T) {
	for _, text := range []string{
		"{", "}", "{}", "{{}}", "{name", "name}", "{name ", "{ name}", "{name }", "{Name}", "{NAME}", "{names}", "{nam}",
		"{retryAfter}", "{retry-after}", "{retry_after", "{message}", "{sentence}", "{status}", "{key}", "${}", "{\x00name}",
		`{"a":{"b":{}}}`, "\\{\\}", "{na{me}", "%7Bname%7D", "{ё}",
	} {
		if got := string(configured(withBody(text)).Refuse(refused(time.Second), false).Body); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestARuleWithoutANameIsNull(t *testing.T) {
	r := refused(time.Second)
	r.Rule = ""
	for _, kind := range []string{"application/json", "text/plain"} {
		if got := string(configured(withBody(`{"rule":{rule}}`), withContentType(kind)).Refuse(r, false).Body); got != `{"rule":null}` {
			t.Errorf("%s: got %s", kind, got)
		}
	}
}

func TestWhatIsFilledInIsNoPlaceholder(t *testing.T) {
	r := refused(time.Second)
	r.Name, r.Rule = "{rule}", "{limit}"
	if got := string(configured(withBody("{name}{rule}")).Refuse(r, false).Body); got != "{rule}{limit}" {
		t.Errorf("got %q", got)
	}
}

func TestNamesAreEscapedWhereTheBodyIsJSON(t *testing.T) {
	r := refused(time.Second)
	r.Name, r.Rule = `a"b`, "c\\d\n\x1fё"
	for kind, want := range map[string]string{
		"application/json":                   `"a\"b" "c\\d\u000a\u001fё"`,
		"application/JSON ; charset=utf-8":   `"a\"b" "c\\d\u000a\u001fё"`,
		"Application/Problem+Json":           `"a\"b" "c\\d\u000a\u001fё"`,
		"application/vnd.api+json;profile=x": `"a\"b" "c\\d\u000a\u001fё"`,
		"text/plain":                         "\"a\"b\" \"c\\d\n\x1fё\"",
		"text/plain; x=application/json":     "\"a\"b\" \"c\\d\n\x1fё\"",
		"application/jsonl":                  "\"a\"b\" \"c\\d\n\x1fё\"",
		"application/a+json.b":               "\"a\"b\" \"c\\d\n\x1fё\"",
		"application/json+xml":               "\"a\"b\" \"c\\d\n\x1fё\"",
	} {
		if got := string(configured(withBody(`"{name}" "{rule}"`), withContentType(kind)).Refuse(r, false).Body); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{"", "{name}", "{{rule}}", "{limit{remaining}", "{reset}{retry_after}", "{nam{name}e}", `{"a":{"b":"{name}"}}`, "ё{"} {
		f.Add(seed, "login")
	}
	f.Add("{name}", "a\"\\\n\x1f{rule}ё")
	f.Fuzz(func(t *testing.T, text, name string) {
		r := &Refusal{Name: name, Decision: algorithms.Decision{Limit: 5, Remaining: 3, Reset: 2 * time.Second, RetryAfter: 1}}
		plain := name
		if name == "" {
			plain = "null"
		}
		want := strings.NewReplacer("{name}", plain, "{rule}", "null", "{limit}", "5", "{remaining}", "3", "{reset}", "2", "{retry_after}", "1").Replace(text)
		if got := string(parseBody(text).fill(r, false)); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
		if name == "" || !utf8.ValidString(name) {
			return
		}
		var read string
		if err := json.Unmarshal(parseBody(`"{name}"`).fill(r, true), &read); err != nil || read != name {
			t.Errorf("in JSON, %q is read as %q, error %v", name, read, err)
		}
	})
}
