package syntax

import (
	"math"
	"strings"
	"text/scanner"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/strutil"
)

// lexer cuts a query into tokens. Underneath lies Go's scanner, as in Loki: it decides what a name, a number,
// a string and a comment is (#, // and /* */), and counts lines and columns. What it does not know, among it
// characters in single quotes, is a name, which then no stream has.
type lexer struct {
	src string
	sc  scanner.Scanner
	// bad is the offset of the first NUL or invalid byte, which is an error as soon as it is read, even ahead.
	bad    int
	badMsg string
	// first is the first error. The scanner goes on after some of them, because an invalid regular expression
	// is the more important error.
	first *ParseError
	// start is the character before which the scanner was called.
	start rune
}

func newLexer(src string) *lexer {
	l := &lexer{src: src, bad: math.MaxInt}
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRuneInString(src[i:])
		switch {
		case r == 0:
			l.bad, l.badMsg = i, "invalid character NUL"
		case r == utf8.RuneError && n == 1:
			l.bad, l.badMsg = i, "invalid UTF-8 encoding"
		default:
			i += n
			continue
		}
		break
	}
	l.sc.Init(strings.NewReader(src))
	l.sc.Error = func(_ *scanner.Scanner, msg string) {
		if l.binary() {
			msg = noDigits
		}
		l.error(msg)
	}
	return l
}

// noDigits is what Loki says of 0b after a space, because its scanner looks for the digits of a binary
// number where it was called; 0B, which looks like a size, is such a number.
const noDigits = "decimal literal has no digits"

// binary reports whether the token is one of those.
func (l *lexer) binary() bool {
	return l.start != '0' && l.sc.Line > 0 && strings.HasPrefix(strings.ToLower(l.src[l.sc.Offset:min(l.sc.Offset+2, len(l.src))]), "0b")
}

// scan reads a token with the space before it.
func (l *lexer) scan() rune {
	l.start = l.sc.Peek()
	return l.sc.Scan()
}

// error notes an error at the token that was read last.
func (l *lexer) error(msg string) {
	if l.first == nil {
		l.first = &ParseError{Line: l.sc.Line, Column: l.sc.Column, Msg: msg}
	}
}

// ahead is the offset of the next character. It has been read already.
func (l *lexer) ahead() int { return l.sc.Pos().Offset }

// lookTo says that characters up to and with the one at offset end were looked at.
func (l *lexer) lookTo(end int) {
	if l.bad > l.ahead() && l.bad <= end {
		l.error(l.badMsg)
	}
}

// skip reads n characters.
func (l *lexer) skip(n int) {
	for range n {
		l.sc.Next()
	}
}

// next returns the next token. At the end, and after an error that leaves no token, it is kEOF.
func (l *lexer) next() token {
	r := l.scan()
	for r == '#' {
		for c := l.sc.Peek(); c != '\n' && c != scanner.EOF; c = l.sc.Next() {
		}
		r = l.scan()
	}
	t := token{at: Pos{Offset: l.sc.Offset, Line: l.sc.Line, Column: l.sc.Column}}
	switch r {
	case scanner.EOF:
		return t
	case scanner.Int, scanner.Float:
		l.number(&t)
		return t
	case '-':
		if l.flag(&t) || l.duration(&t, "-") {
			return t
		}
	case scanner.String, scanner.RawString:
		l.string(&t)
		return t
	case '[':
		l.rangeDuration(&t)
		return t
	}
	l.word(&t)
	return t
}

func (l *lexer) number(t *token) {
	text := l.sc.TokenText()
	if l.binary() {
		l.error(noDigits)
	}
	if l.duration(t, text) {
		return
	}
	if more, ok := l.run(isBytesRune); ok {
		if n, err := parseBytes(text + more); err == nil {
			t.kind, t.bytes = kBytes, n
			l.skip(utf8.RuneCountInString(more))
			return
		}
	}
	t.kind, t.text = kNumber, text
}

// duration reads a duration of which start was read already.
func (l *lexer) duration(t *token, start string) bool {
	more, ok := l.run(isDurationRune)
	if !ok {
		return false
	}
	d, err := parseDuration(start + more)
	if err != nil {
		return false
	}
	t.kind, t.duration = kDuration, int64(d)
	l.skip(utf8.RuneCountInString(more))
	return true
}

// run returns the longest run of digits, points and runes of a unit that follows.
func (l *lexer) run(unit func(rune) bool) (string, bool) {
	rest := l.src[l.ahead():]
	n := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsNumber(r) && r != '.' && !unit(r) })
	if n < 0 {
		n = len(rest)
	}
	if n > 0 {
		l.lookTo(l.ahead() + n)
	}
	return rest[:n], n > 0
}

// isDurationRune reports whether a unit of time has the letter: ns, us, ms, s, m, h, d, w, y.
func isDurationRune(r rune) bool { return strings.ContainsRune("nuµmshdwy", r) }

// isBytesRune reports whether a unit of size has the letter. There are no exabytes: they do not fit.
func isBytesRune(r rune) bool { return strings.ContainsRune("BikKMGTP", r) }

// flag reads --strict and --keep-empty, of which the first - was read.
func (l *lexer) flag(t *token) bool {
	rest := l.src[l.ahead():]
	if !strings.HasPrefix(rest, "-") {
		return false
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' })
	if n < 0 {
		n = len(rest)
	}
	l.lookTo(l.ahead() + n)
	flag := "-" + rest[:n]
	if flag != flagStrict && flag != flagKeepEmpty {
		return false
	}
	t.kind, t.text = kFlag, flag
	l.skip(n)
	return true
}

const (
	flagStrict    = "--strict"
	flagKeepEmpty = "--keep-empty"
)

func (l *lexer) string(t *token) {
	text := l.sc.TokenText()
	if !utf8.ValidString(text) {
		l.error("invalid UTF-8 rune")
		return
	}
	value, err := strutil.Unquote(text)
	if err != nil {
		l.error(err.Error())
		return
	}
	t.kind, t.text = kString, value
}

// rangeDuration reads a range, of which [ was read. Only Prometheus' notation is one.
func (l *lexer) rangeDuration(t *token) {
	var b strings.Builder
	for r := l.sc.Next(); r != ']'; r = l.sc.Next() {
		if r == scanner.EOF {
			l.error("missing closing ']' in duration")
			return
		}
		b.WriteRune(r)
	}
	d, err := model.ParseDuration(b.String())
	if err != nil {
		l.error(err.Error())
		return
	}
	t.kind, t.duration = kRange, int64(time.Duration(d))
}

// word reads a keyword, an operator, or a name.
func (l *lexer) word(t *token) {
	text := l.sc.TokenText()
	lower := strings.ToLower(text)
	if k, ok := lookupFunction(lower); ok {
		t.kind, t.text = k, lower
		if !l.callFollows() {
			t.kind, t.text = kIdentifier, text
		}
		return
	}
	if k, ok := lookupWord(strings.ToLower(text + string(l.sc.Peek()))); ok {
		l.skip(1)
		t.kind = k
		return
	}
	if k, ok := lookupWord(lower); ok {
		t.kind = k
		return
	}
	t.kind, t.text = kIdentifier, text
}

// callFollows reports whether ( or by ( or without ( follows. If not, everything is looked at up to the end,
// and errors there count, as in Loki.
func (l *lexer) callFollows() bool {
	rest := strings.TrimLeftFunc(l.src[l.ahead():], unicode.IsSpace)
	start := len(l.src) - len(rest)
	if strings.HasPrefix(rest, "(") {
		l.lookTo(start + 1)
		return true
	}
	for _, by := range [...]string{"by", "without"} {
		n := prefixFold(rest, by)
		if n == 0 {
			continue
		}
		behind := strings.TrimLeftFunc(rest[n:], unicode.IsSpace)
		l.lookTo(len(l.src) - len(behind) + 1)
		return strings.HasPrefix(behind, "(")
	}
	l.lookTo(len(l.src))
	return false
}

// prefixFold returns the bytes of s that are word in any case of letters, 0 if it does not begin with it.
func prefixFold(s, word string) int {
	n := 0
	for range word {
		_, size := utf8.DecodeRuneInString(s[n:])
		n += size
	}
	if strings.ToLower(s[:n]) != word {
		return 0
	}
	return n
}
