package lokipush

import (
	"bytes"
	"fmt"

	"github.com/shaledb/shale/internal/jsonscan"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// maxJSONDepth bounds the nesting of values that are skipped.
const maxJSONDepth = 64

// scanner parses JSON in place. Strings may hold any bytes, as in Loki, because lines are not always
// UTF-8.
type scanner struct {
	b []byte
	p int
	// expectText reserves memory for an arena of so many bytes; nil: it is reserved already.
	expectText func(bytes int) error
}

func (s *scanner) malformed(what string) error {
	return &wire.Malformed{What: what, At: s.p}
}

// space skips white space and returns the next byte, or 0 at the end.
func (s *scanner) space() byte {
	if s.p = jsonscan.SkipSpace(s.b, s.p); s.p < len(s.b) {
		return s.b[s.p]
	}
	return 0
}

// expect skips white space and the byte c.
func (s *scanner) expect(c byte) error {
	if got := s.space(); got != c || s.p == len(s.b) {
		return s.malformed(fmt.Sprintf("JSON that has no %q", c))
	}
	s.p++
	return nil
}

// more skips the separator before the next member of an object or array that ends with closing, and
// reports whether there is a next member. n members have been parsed already.
func (s *scanner) more(n int, closing byte) (bool, error) {
	c := s.space()
	switch {
	case s.p == len(s.b):
		return false, s.malformed("JSON that is cut off")
	case c == closing:
		s.p++
		return false, nil
	case n == 0:
		return true, nil
	case c != ',':
		return false, s.malformed(fmt.Sprintf("JSON that has neither a comma nor %q", closing))
	}
	s.p++
	if s.space() == closing {
		return false, s.malformed("JSON with a trailing comma")
	}
	return true, nil
}

// text parses a string and returns the bytes between its quotes.
func (s *scanner) text(what string) (raw []byte, escaped bool, err error) {
	if s.space() != '"' {
		return nil, false, s.malformed(what + " that is not a string")
	}
	begin := s.p + 1
	end, escaped := jsonscan.StringEnd(s.b, begin)
	if end < 0 {
		return nil, false, s.malformed(what + " that is cut off")
	}
	s.p = end + 1
	return s.b[begin:end:end], escaped, nil
}

// plain parses a string. If it has escapes, it decodes them into arena.
func (s *scanner) plain(what string, arena *[]byte) ([]byte, error) {
	at := s.p
	raw, escaped, err := s.text(what)
	if err != nil || !escaped {
		return raw, err
	}
	begin := len(*arena)
	if n := begin + len(raw); n > cap(*arena) { // no escape is shorter than what it stands for
		n = max(n, 2*cap(*arena))
		if s.expectText != nil {
			if err := s.expectText(n); err != nil {
				return nil, err
			}
		}
		*arena = model.Sized(*arena, n)
	}
	out, ok := jsonscan.AppendUnescaped(*arena, raw, jsonscan.JSON)
	if !ok {
		s.p = at
		return nil, s.malformed(what + " with an escape that JSON does not have")
	}
	*arena = out
	return out[begin:len(out):len(out)], nil
}

// null skips a null and reports whether there was one.
func (s *scanner) null() bool {
	if s.space() == 'n' && bytes.HasPrefix(s.b[s.p:], []byte("null")) {
		s.p += len("null")
		return true
	}
	return false
}

// skip skips a value of any kind.
func (s *scanner) skip(depth int) error {
	if depth > maxJSONDepth {
		return s.malformed("JSON that is nested too deeply")
	}
	switch c := s.space(); {
	case s.p == len(s.b):
		return s.malformed("JSON that is cut off")
	case c == '"':
		_, _, err := s.text("a string")
		return err
	case c == '{' || c == '[':
		s.p++
		return s.skipMembers(c, depth)
	}
	begin := s.p
	for s.p < len(s.b) && wordByte(s.b[s.p]) {
		s.p++
	}
	switch word := string(s.b[begin:s.p]); {
	case word == "true" || word == "false" || word == "null":
	case len(word) > 0 && (word[0] == '-' || word[0] >= '0' && word[0] <= '9'):
	default:
		s.p = begin
		return s.malformed("JSON with an invalid value")
	}
	return nil
}

func wordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.'
}

func (s *scanner) skipMembers(open byte, depth int) error {
	closing := open + 2 // true for both kinds in ASCII
	for n := 0; ; n++ {
		more, err := s.more(n, closing)
		if err != nil || !more {
			return err
		}
		if open == '{' {
			if _, _, err := s.text("a name"); err != nil {
				return err
			}
			if err := s.expect(':'); err != nil {
				return err
			}
		}
		if err := s.skip(depth + 1); err != nil {
			return err
		}
	}
}

// name parses the name of a member and skips its colon.
func (s *scanner) name() ([]byte, error) {
	raw, _, err := s.text("a name")
	if err != nil {
		return nil, err
	}
	return raw, s.expect(':')
}
