package line

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/shaledb/shale/internal/read/logql/line/extract"
)

// The paths of | json and the keys of | logfmt have the same tokens; those of | logfmt have no brackets, dots
// and indexes. Errors name tokens as Loki does.
type pathToken struct {
	name string
	// text is the content of a string or a field, and an index as a step of a jsonPath.
	text string
}

// The names of tokens. Loki calls a name that is not quoted FIELD in a path and KEY in | logfmt.
const (
	tokenEnd     = "$end"
	tokenOpen    = "LSB"
	tokenClose   = "RSB"
	tokenDot     = "DOT"
	tokenIndex   = "INDEX"
	tokenString  = "STRING"
	pathField    = "FIELD"
	logfmtKey    = "KEY"
	startOfPath  = "LSB or FIELD"
	startOfKey   = "STRING or KEY"
	withinSquare = "STRING or INDEX"
)

// pathScanner splits a path into tokens.
type pathScanner struct {
	rest []rune
	// word is the name of the token of a name without quotes. With pathField, there are brackets, dots and
	// indexes.
	word string
	// err is the first rune that cannot be part of a token. The path ends there: where it may end, this is its
	// error, and elsewhere the end is what was not expected.
	err error
}

// next returns the next token. A NUL ends the path.
func (s *pathScanner) next() pathToken {
	for len(s.rest) > 0 && isBlank(s.rest[0]) {
		s.rest = s.rest[1:]
	}
	if len(s.rest) == 0 || s.rest[0] == 0 {
		return pathToken{name: tokenEnd}
	}
	if n := fieldLen(s.rest); n > 0 {
		return pathToken{s.word, string(s.cut(n))}
	}
	first := s.cut(1)[0]
	switch {
	case first == '"':
		return pathToken{tokenString, s.quoted()}
	case s.word == logfmtKey:
	case first == '[':
		return pathToken{name: tokenOpen}
	case first == ']':
		return pathToken{name: tokenClose}
	case first == '.':
		return pathToken{name: tokenDot}
	case first >= '0' && first <= '9':
		return s.index(first)
	}
	s.err = fmt.Errorf("unexpected char %c", first)
	return pathToken{name: tokenEnd}
}

// cut removes the first n runes and returns them.
func (s *pathScanner) cut(n int) []rune {
	first := s.rest[:n]
	s.rest = s.rest[n:]
	return first
}

// quoted returns the content of a string whose first quote has been cut. It ends at the next quote, closing
// bracket or NUL: there are no escapes.
func (s *pathScanner) quoted() string {
	for i, r := range s.rest {
		if r == '"' || r == ']' || r == 0 {
			return string(s.cut(i + 1)[:i])
		}
	}
	return string(s.cut(len(s.rest)))
}

// index returns the index that begins with a digit. White space or a closing bracket must follow it.
func (s *pathScanner) index(first rune) pathToken {
	digits := []rune{first}
	for len(s.rest) > 0 && s.rest[0] >= '0' && s.rest[0] <= '9' {
		digits = append(digits, s.cut(1)...)
	}
	after := rune(0)
	if len(s.rest) > 0 {
		after = s.rest[0]
	}
	n := 0
	switch {
	case after == '.':
		s.err = errors.New("cannot use float as array index")
	case after != ']' && !isBlank(after):
		s.err = fmt.Errorf("non-integer value: %c", after)
	default:
		n, s.err = strconv.Atoi(string(digits))
	}
	if s.err != nil {
		return pathToken{name: tokenEnd}
	}
	return pathToken{tokenIndex, fmt.Sprintf("[%d]", n)}
}

// unexpected is the error about a token. expected names those that were possible; empty: Loki does not say.
func unexpected(t pathToken, expected string) error {
	if expected != "" {
		expected = ", expecting " + expected
	}
	return fmt.Errorf("syntax error: unexpected %s%s", t.name, expected)
}

// parseJSONPath reads a.b["c d"][0].
func parseJSONPath(text string) (path jsonPath, err error) {
	s := pathScanner{rest: []rune(text), word: pathField}
	for {
		t := s.next()
		switch {
		case t.name == tokenOpen:
			step := s.next()
			if step.name != tokenString && step.name != tokenIndex {
				return nil, unexpected(step, withinSquare)
			}
			if end := s.next(); end.name != tokenClose {
				return nil, unexpected(end, tokenClose)
			}
			path = append(path, step.text)
		case len(path) == 0:
			if t.name != pathField {
				return nil, unexpected(t, startOfPath)
			}
			path = append(path, t.text)
		case t.name == tokenEnd:
			return path, s.err
		case t.name == tokenDot:
			if t = s.next(); t.name != pathField {
				return nil, unexpected(t, pathField)
			}
			path = append(path, t.text)
		default:
			return nil, unexpected(t, "")
		}
	}
}

// noKey is a key that no line has.
const noKey = ""

// parseLogfmtKey reads a key, which may be in quotes. More strings in quotes may follow it; as in Loki, this
// is the key of no line then.
func parseLogfmtKey(text string) (key string, err error) {
	s := pathScanner{rest: []rune(text), word: logfmtKey}
	for first := true; ; first = false {
		t := s.next()
		switch {
		case first && (t.name == tokenString || t.name == logfmtKey):
			key = t.text
		case first:
			return "", unexpected(t, startOfKey)
		case t.name == tokenString:
			key = noKey
		case t.name == tokenEnd:
			return key, s.err
		default:
			return "", unexpected(t, "")
		}
	}
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

// fieldLen returns the length of the name at the beginning, 0 if there is none.
func fieldLen(s []rune) int {
	for i, r := range s {
		if r > 0x7f || !extract.IsNameByte(byte(r)) || i == 0 && isDigit(byte(r)) {
			return i
		}
	}
	return len(s)
}
