package config

import (
	"strings"
	"testing"
)

func TestABrokenDocumentSaysAtWhichLineAndColumn(t *testing.T) {
	const value = "want a value: an object, an array, a string in double quotes, a number, true, false or null"
	const end = "the document ends here: want the rest of it; is a quote or bracket not closed?"
	for document, want := range map[string]string{
		"":                              `document: empty: want a JSON object with "limits" and "rules"`,
		" \n\t ":                        `document: empty: want a JSON object with "limits" and "rules"`,
		"{\n  \"limits\": {},\n}":       `line 3, column 1: '}': want no comma ahead of it, or something between them`,
		"{limits: {}}":                  `line 1, column 2: 'l': want a name in double quotes`,
		"{\n  // none\n}":               `line 2, column 3: '/': want a name in double quotes`,
		`{"limits": [1,]}`:              `line 1, column 15: ']': want no comma ahead of it, or something between them`,
		`{"limits": 'x'}`:               `line 1, column 12: '\'': ` + value,
		"\ufeff{}":                      `line 1, column 1: '\ufeff': ` + value,
		`{"é": NaN}`:                    `line 1, column 7: 'N': ` + value,
		"{\"a\":\n\"é\" x}":             `line 2, column 5: 'x': want "," or "}"`,
		`{"limits" {}}`:                 `line 1, column 11: '{': want ":"`,
		`[1 2]`:                         `line 1, column 4: '2': want "," or "]"`,
		`{"a": 1]`:                      `line 1, column 8: ']': want "," or "}"`,
		`{"limits": {}} {}`:             `line 1, column 16: '{': want nothing after the document`,
		"{}\n}":                         `line 2, column 1: '}': want nothing after the document`,
		`{"a": "\x41"}`:                 `line 1, column 9: 'x': want one of \" \\ \/ \b \f \n \r \t \u after the backslash, or \\ for a backslash itself`,
		`{"a": "\u12g4"}`:               `line 1, column 12: 'g': want four hexadecimal digits after \u`,
		"{\"a\": \"b\nc\"}":             `line 1, column 9: '\n': want control characters as escapes, such as \n for a new line`,
		"{\"a\": \"\x1b\"}":             `line 1, column 8: '\x1b': want control characters as escapes, such as \n for a new line`,
		`{"a": True}`:                   `line 1, column 7: 'T': ` + value,
		`{"a": trUe}`:                   `line 1, column 9: 'U': want true, false or null`,
		`{"a": -x}`:                     `line 1, column 8: 'x': want a digit`,
		`{"a": 1.}`:                     `line 1, column 9: '}': want a digit`,
		`{"a": 1e}`:                     `line 1, column 9: '}': want a digit`,
		`{"a": 01}`:                     `line 1, column 8: '1': want "," or "}"`,
		"{\"a\":\x00}":                  `line 1, column 6: '\x00': ` + value,
		`{`:                             `line 1, column 2: ` + end,
		"{\n\"a\": [":                   `line 2, column 7: ` + end,
		`{"a": "b`:                      `line 1, column 9: ` + end,
		`{"a": "b\`:                     `line 1, column 10: ` + end,
		`nul`:                           `line 1, column 4: ` + end,
		"{\"a\": \"\xff\"}":             `line 1, column 8: the byte 0xff: want UTF-8`,
		"{\n\"é\": \"x\xc3\"}":          `line 2, column 8: the byte 0xc3: want UTF-8`,
		"{\"\xed\xa0\x80\": 1}":         `line 1, column 3: the byte 0xed: want UTF-8`,
		`{"a": "\ud800"}`:               `line 1, column 8: \ud800: want the other half of the character as well`,
		`{"\uDC00": 1}`:                 `line 1, column 3: \uDC00: want the other half of the character as well`,
		`{"a": "\\\ud800\ud801\udc00"}`: `line 1, column 10: \ud800: want the other half of the character as well`,
		`{"a": "\ud83d\ude00\ude00"}`:   `line 1, column 20: \ude00: want the other half of the character as well`,
		`{"a": "\ud83d\u0041"}`:         `line 1, column 8: \ud83d: want the other half of the character as well`,
	} {
		wantMistakes(t, document, want)
	}
}

func TestEscapedCharactersAreRead(t *testing.T) {
	c := mustParse(t, `{"limits": {}, "response": {"body": "\ud83d\ude00 \\ud800 \u00e9\n\" {\"limit\"}"}}`)
	if got, want := *c.Response.Body, "😀 \\ud800 é\n\" {\"limit\"}"; got != want {
		t.Errorf("the body is %q, want %q", got, want)
	}
}

func TestDeepNestingIsRefusedBeforeItEndsTheStack(t *testing.T) {
	nested := func(levels int) string {
		return `{"limits": {}, "$schema": ` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	mustParse(t, nested(maxDepth))
	wantMistakes(t, nested(maxDepth+1), "line 1, column 42: nested too deep: want no more than 16 levels")
	wantMistakes(t, strings.Replace(strings.Repeat(`{"a":`, 17), "a", "é", 1)+"1"+strings.Repeat("}", 17), "line 1, column 81: nested too deep: want no more than 16 levels")
	wantMistakes(t, strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), "line 1, column 10001: '[': want no more than 16 levels")
}

func TestAVeryLargeDocumentIsRefused(t *testing.T) {
	const document = `{"limits": {}}`
	mustParse(t, document+strings.Repeat(" ", MaxDocument-len(document)))
	wantMistakes(t, document+strings.Repeat(" ", MaxDocument-len(document)+1), "document: 1048577 bytes long: want no more than 1048576")
}

func TestTheSameMistakeIsListedOnce(t *testing.T) {
	wantMistakes(t, `{"limits": {}, "rules": [], "rules": [], "rules": 5}`, "rules: stands twice in one object: keep one")
}
