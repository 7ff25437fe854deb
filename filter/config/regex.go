package config

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
)

// What regular expressions may be, so that no document eats the VM. Go's take
// time in proportion to the length of the text times that of the program.
const (
	maxRegexLength = 1_000 // bytes
	maxRegexSteps  = 1_000 // as steps counts them; some 200 bytes each
	maxRegexes     = 200   // different ones in a document
)

const wantRegex = `a regular expression in RE2's syntax`

// regexValue is a regular expression that matches a text whole or not at all.
// Equal ones are one.
var regexValue = value[*regexp.Regexp]{wantRegex, boundedSchema(maxRegexLength), func(r *reader, n *node, to **regexp.Regexp) bool {
	if n.kind != stringKind {
		r.wrongType(n, wantRegex)
		return false
	}
	read, known := r.regexes[n.text]
	if !known {
		if len(r.regexes) == maxRegexes {
			r.wrong(n, "one regular expression too many: want no more than "+strconv.Itoa(maxRegexes)+" different ones in a document")
			return false
		}
		if r.regexes == nil {
			r.regexes = map[string]regexOrWhyNot{}
		}
		read = compileRegex(n.text)
		r.regexes[n.text] = read
	}
	if read.err != nil {
		r.wrong(n, read.err.Error())
		return false
	}
	*to = read.compiled
	return true
}}

// pathRegexValue is a regular expression that some path can match. Only a first
// letter is certain: a ? or # can be in a path, percent-encoded.
var pathRegexValue = value[*regexp.Regexp]{regexValue.want, regexValue.schema, func(r *reader, n *node, to **regexp.Regexp) bool {
	if !regexValue.read(r, n, to) {
		return false
	}
	if first := r.regexes[n.text].first; first >= 0 && first != '/' && first != '*' {
		r.wrong(n, "matches no path, since it is matched whole: want one that begins with / or .*")
		return false
	}
	return true
}}

// firstLetter is what every text that re matches begins with, or -1 where that
// is not plain to see.
func firstLetter(re *syntax.Regexp) rune {
	for re != nil {
		switch re.Op {
		case syntax.OpLiteral:
			return re.Rune[0]
		case syntax.OpCapture:
			re = re.Sub[0]
		case syntax.OpConcat:
			first := re.Sub[0]
			if op := first.Op; (op == syntax.OpBeginText || op == syntax.OpBeginLine) && len(re.Sub) > 1 {
				first = re.Sub[1]
			}
			re = first
		default:
			return -1
		}
	}
	return -1
}

// regexOrWhyNot is what became of the text of a regular expression.
type regexOrWhyNot struct {
	compiled *regexp.Regexp
	first    rune // firstLetter
	err      error
}

// compileRegex compiles a regular expression to match whole texts. A dot is any
// character, line feeds included: percent-encoded ones are in paths, and must
// not be a way around a rule.
func compileRegex(s string) regexOrWhyNot {
	switch {
	case s == "":
		return regexOrWhyNot{err: wantError(wantRegex)}
	case len(s) > maxRegexLength:
		return noRegex(strconv.Itoa(len(s)) + " bytes long: want a regular expression of no more than " + strconv.Itoa(maxRegexLength))
	}
	// By itself first, so that no bracket in it can close the ones around it.
	parsed, err := syntax.Parse(s, syntax.Perl)
	if broken, ok := errors.AsType[*syntax.Error](err); ok {
		return noRegex(string(broken.Code) + ": want " + wantRegex)
	}
	if n := steps(parsed); n > maxRegexSteps {
		return noRegex(strconv.Itoa(n) + " steps long, with classes and repetitions written out: want no more than " + strconv.Itoa(maxRegexSteps))
	}
	compiled, err := regexp.Compile("(?s)^(?:" + s + ")$")
	if err != nil {
		return noRegex(`a \Q stands open: want \E after the text that it quotes`)
	}
	return regexOrWhyNot{compiled: compiled, first: firstLetter(parsed)}
}

func noRegex(why string) regexOrWhyNot { return regexOrWhyNot{err: errors.New(why)} }

// steps is about how much a regular expression takes: a step for each character,
// for each range of a class (\pL has hundreds), and for each operator, as often as
// counted repetitions such as {3} have them. Parsing has bounded those to 1,000 in
// all, so there is no overflow.
func steps(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		return max(1, len(re.Rune)/2)
	case syntax.OpRepeat:
		n = 0
	}
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return n
}
