package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDocument is how long a document may be, in bytes. It bounds what reading
// one takes of a VM's memory, which never shrinks again.
const MaxDocument = 1 << 20

var wantLevels = "want no more than " + strconv.Itoa(maxDepth) + " levels"

// newTokens are the tokens of a document. That a name stands twice in an object
// is left for the tree to find: the decoder would stop there, and it is one
// mistake among others.
func newTokens(document []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(document), jsontext.AllowDuplicateNames(true))
}

// checkSyntax returns what is wrong with the document's JSON, if anything: one
// mistake, because what follows it is guesswork.
func checkSyntax(document []byte) error {
	if len(bytes.TrimSpace(document)) == 0 {
		return Mistakes{`document: empty: want a JSON object with "limits" and "rules"`}
	}
	// Token by token: reading a whole value at once recurses, as deep as the
	// document says.
	tokens := newTokens(document)
	for more := true; more; more = tokens.StackDepth() > 0 {
		if _, err := tokens.ReadToken(); err != nil {
			return syntaxMistake(document, tokens, err)
		}
	}
	if end := skipSpace(document, int(tokens.InputOffset())); end < len(document) {
		return unexpected(document, end, "want nothing after the document")
	}
	return nil
}

// syntaxMistake explains why there is no further token. What was wanted follows
// from where the decoder is; of its error only the place counts, which for a
// token that breaks off is where it does.
func syntaxMistake(document []byte, tokens *jsontext.Decoder, err error) error {
	place := len(document)
	if broken, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		place = int(broken.ByteOffset)
	}
	at := skipSpace(document, int(tokens.InputOffset()))
	behindComma := false
	container, length := tokens.StackIndex(tokens.StackDepth())
	inObject := container == jsontext.KindBeginObject
	afterName := inObject && length%2 == 1 // names and values are counted alike
	if length > 0 {
		delimiter, want := byte(','), `want "," or "]"`
		switch {
		case afterName:
			delimiter, want = ':', `want ":"`
		case inObject:
			want = `want "," or "}"`
		}
		if at == len(document) || document[at] != delimiter {
			return unexpected(document, at, want)
		}
		at = skipSpace(document, at+1)
		behindComma = !afterName
	}
	var first byte
	if at < len(document) {
		first = document[at]
	}
	switch {
	case behindComma && (first == '}' || first == ']'):
		return unexpected(document, at, "want no comma ahead of it, or something between them")
	case inObject && !afterName && first != '"':
		return unexpected(document, at, "want a name in double quotes")
	case first == '"':
		return brokenString(document, place)
	case first == 't', first == 'f', first == 'n':
		return unexpected(document, place, "want true, false or null")
	case first == '-', '0' <= first && first <= '9':
		return unexpected(document, place, "want a digit")
	case first == '{', first == '[': // it may stand here, but no deeper than the decoder goes
		return unexpected(document, at, wantLevels)
	}
	return unexpected(document, at, "want a value: an object, an array, a string in double quotes, a number, true, false or null")
}

// brokenString explains why a string goes no further than to place.
func brokenString(document []byte, place int) error {
	rest := document[place:]
	switch {
	case !bytes.HasPrefix(rest, []byte(`\`)):
		return unexpected(document, place, `want control characters as escapes, such as \n for a new line`)
	case !bytes.HasPrefix(rest, []byte(`\u`)):
		return unexpected(document, place+1, `want one of \" \\ \/ \b \f \n \r \t \u after the backslash, or \\ for a backslash itself`)
	}
	const escapeLength = len(`\u0000`)
	for i := len(`\u`); i < escapeLength; i++ {
		if i == len(rest) || !strings.ContainsRune("0123456789abcdefABCDEF", rune(rest[i])) {
			return unexpected(document, place+i, `want four hexadecimal digits after \u`)
		}
	}
	return mistakeAt(document, place, string(rest[:escapeLength])+": want the other half of the character as well")
}

// unexpected is the mistake of a character that is out of place, or of the end
// of the document where there is none.
func unexpected(document []byte, at int, want string) error {
	if at == len(document) {
		return mistakeAt(document, at, "the document ends here: want the rest of it; is a quote or bracket not closed?")
	}
	r, size := utf8.DecodeRune(document[at:])
	if r == utf8.RuneError && size == 1 {
		return mistakeAt(document, at, "the byte 0x"+strconv.FormatUint(uint64(document[at]), 16)+": want UTF-8")
	}
	return mistakeAt(document, at, strconv.QuoteRune(r)+": "+want)
}

// skipSpace is where the document goes on after white space, from offset on.
func skipSpace(document []byte, offset int) int {
	return len(document) - len(bytes.TrimLeft(document[offset:], " \t\r\n"))
}

// tooDeep is the mistake of a document in which the value that begins before
// offset is nested too deep.
func tooDeep(document []byte, offset int64) error {
	return mistakeAt(document, int(offset)-1, "nested too deep: "+wantLevels)
}

// mistakeAt is a mistake at the byte at offset, of which it says the line and
// the column, both from 1 and in characters.
func mistakeAt(document []byte, offset int, what string) error {
	before := document[:offset]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := utf8.RuneCount(before[lineStart:]) + 1
	return Mistakes{"line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column) + ": " + what}
}
