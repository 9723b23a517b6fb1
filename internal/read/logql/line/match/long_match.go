package match

import (
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// longMatch is how much a match may have to do, in bytes of the line times instructions of the program,
	// before it is run in a way that can be ended: some 50 ms. That way is slower for short lines, as it does
	// not look for a beginning.
	longMatch = 1 << 22
	// readBetween is how many characters a match reads before it is seen whether anybody waits for it: with
	// the largest program some 20 ms, and with hundreds of groups five times as much.
	readBetween = 256
)

// Matcher is a regular expression of which a match can be ended.
type Matcher struct {
	Regexp *regexp.Regexp
	Size   int // of its program, about; more if there are so many groups that keeping them is most of the work
}

// NewMatcher compiles an expression that is small enough to be run over lines. It returns the parsed
// expression too.
func NewMatcher(expr string) (*Matcher, *syntax.Regexp, error) {
	parsed, err := parseRegexp(expr)
	if err != nil {
		return nil, nil, err
	}
	re, err := compileRegexp(expr)
	if err != nil {
		return nil, nil, err
	}
	return &Matcher{re, programSize(parsed) * (1 + re.NumSubexp()/64)}, parsed, nil
}

// long reports whether a match may take so long that it must be possible to end it.
func (m *Matcher) long(line []byte, ended func() bool) bool {
	return ended != nil && len(line) > longMatch/max(m.Size, 1)
}

// Matches reports whether the line matches. If ended has said so, the answer means nothing.
func (m *Matcher) Matches(line []byte, ended func() bool) bool {
	if m.long(line, ended) {
		return m.Regexp.MatchReader(&runes{line: line, ended: ended})
	}
	return m.Regexp.Match(line)
}

// Groups returns the places of the groups, as regexp.FindSubmatchIndex does.
func (m *Matcher) Groups(line []byte, ended func() bool) []int {
	if m.long(line, ended) {
		return m.Regexp.FindReaderSubmatchIndex(&runes{line: line, ended: ended})
	}
	return m.Regexp.FindSubmatchIndex(line)
}

// runes reads the characters of a line until the query has ended.
type runes struct {
	line  []byte
	n     int
	ended func() bool
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; len(r.line) == 0 || r.n%readBetween == 0 && r.ended() {
		r.line = nil
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.line)
	r.line = r.line[size:]
	return c, size, nil
}

// matchesUntil is holds of a test that may take long: whether anybody waits for the answer is asked
// meanwhile.
func matchesUntil(t lineTest, line []byte, ended func() bool) bool {
	switch t := t.(type) {
	case *guarded:
		return t.holdsUntil(line, ended)
	case anyOf:
		for _, x := range t {
			if matchesUntil(x, line, ended) {
				return true
			}
		}
		return false
	}
	return t.Matches(line)
}
