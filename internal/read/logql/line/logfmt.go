package line

import (
	"fmt"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/jsonscan"
	"github.com/shaledb/shale/internal/read/logql/line/extract"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// logfmtScanner walks the pairs of a logfmt line: key=value, key="quoted value" or key, with whatever is not
// above a space between them.
type logfmtScanner struct {
	line       []byte
	at         int
	key, value []byte

	// The last error: a message or an unexpected byte, and the index after it.
	message string
	wrong   byte
	errorAt int
}

func (s *logfmtScanner) reset(line []byte) { *s = logfmtScanner{line: line} }

func (s *logfmtScanner) atEnd() bool { return s.at >= len(s.line) }

func (s *logfmtScanner) failed() bool { return s.errorAt > 0 }

func (s *logfmtScanner) problem() string {
	if s.message == "" {
		return fmt.Sprintf("logfmt syntax error at pos %d : unexpected %q", s.errorAt, s.wrong)
	}
	return fmt.Sprintf("logfmt syntax error at pos %d : %s", s.errorAt, s.message)
}

func (s *logfmtScanner) fail(message string) bool {
	s.message, s.errorAt = message, s.at+1
	return false
}

// unexpected notes a byte that must not be there, and passes the rest of the word.
func (s *logfmtScanner) unexpected(c byte) bool {
	s.message, s.wrong, s.errorAt = "", c, s.at+1
	return s.skip()
}

func (s *logfmtScanner) skip() bool {
	for !s.atEnd() && s.line[s.at] > ' ' {
		s.at++
	}
	return false
}

// next moves to the next pair. It returns false at the end, and also after an error, which more pairs can
// follow.
func (s *logfmtScanner) next(l *labels) bool {
	s.key, s.value = nil, nil
	for !s.atEnd() && s.line[s.at] <= ' ' {
		s.at++
	}
	if s.atEnd() {
		return false
	}
	start, ascii := s.at, true
	for !s.atEnd() {
		c := s.line[s.at]
		if c <= ' ' || c == '=' || c == '"' {
			break
		}
		ascii = ascii && c < utf8.RuneSelf
		s.at++
	}
	ends := s.atEnd() || s.line[s.at] <= ' '
	if !ends && (s.line[s.at] == '"' || s.at == start) {
		return s.unexpected(s.line[s.at])
	}
	s.key = s.line[start:s.at]
	if !ascii && extract.HasInvalid(s.key) {
		s.fail("invalid key")
		if !ends {
			s.skip()
		}
		return false
	}
	if ends {
		return true
	}
	if s.at++; s.atEnd() || s.line[s.at] <= ' ' {
		return true
	}
	if s.line[s.at] == '"' {
		return s.quoted(l)
	}
	start = s.at
	for !s.atEnd() && s.line[s.at] > ' ' {
		if c := s.line[s.at]; c == '=' || c == '"' {
			return s.unexpected(c)
		}
		s.at++
	}
	s.value = s.line[start:s.at]
	return true
}

func (s *logfmtScanner) quoted(l *labels) bool {
	end, escaped := jsonscan.StringEnd(s.line, s.at+1)
	if end < 0 {
		s.at = len(s.line)
		return s.fail("unterminated quoted value")
	}
	raw := s.line[s.at+1 : end]
	s.at = end + 1
	if !escaped {
		s.value = raw
		return true
	}
	at, ok := len(l.arena), false
	if l.arena, ok = jsonscan.AppendUnescaped(l.arena, raw, jsonscan.Logfmt); !ok {
		return s.fail("invalid quoted value")
	}
	s.value = l.arena[at:len(l.arena):len(l.arena)]
	return true
}

// logfmtParser is | logfmt without expressions: each key becomes a label.
type logfmtParser struct {
	strict, keepEmpty bool
}

func (p *logfmtParser) run(r *Runner, line []byte) ([]byte, bool) {
	s, l := &r.logfmt, &r.labels
	if r.parsed() {
		return line, true
	}
	for s.reset(line); !s.atEnd(); {
		if !s.next(l) {
			if p.strict {
				break
			}
			continue
		}
		if len(s.value) == 0 && !p.keepEmpty || r.skips(s.key) {
			continue
		}
		name := l.sanitized(s.key)
		if name == "" {
			continue
		}
		name, ok := r.admit(name)
		if !ok {
			continue
		}
		if l.setParsed(name, l.valid(s.value)); !r.accepts(name) {
			return line, false
		}
		if len(r.p.hints) > 0 && r.parsed() {
			break
		}
	}
	if p.strict && s.failed() {
		l.fail(errLogfmt, s.problem())
	}
	return line, true
}

// logfmtPicker is | logfmt with expressions: the values of some keys become labels, empty ones where the line
// has no such key.
type logfmtPicker struct {
	strict bool
	// The labels, and the key of each. Of two labels of one key the first gets the value.
	labels, keys []string
}

func newLogfmtPicker(s *syntax.LogfmtParser) (*logfmtPicker, error) {
	p := &logfmtPicker{strict: s.Strict}
	for _, e := range s.Extract {
		key, err := parseLogfmtKey(e.From)
		if err != nil {
			return nil, invalidf("cannot parse expression [%s]: %s", e.From, err)
		}
		if i := indexOf(p.labels, e.Label); i >= 0 {
			p.keys[i] = key
			continue
		}
		p.labels, p.keys = append(p.labels, e.Label), append(p.keys, key)
	}
	return p, nil
}

func indexOf(all []string, s string) int {
	for i := range all {
		if all[i] == s {
			return i
		}
	}
	return -1
}

func (p *logfmtPicker) run(r *Runner, line []byte) ([]byte, bool) {
	s, l := &r.logfmt, &r.labels
	if r.parsed() {
		return line, true
	}
	for _, name := range p.labels {
		if !l.taken(name) {
			l.setParsed(name, "")
		}
	}
	for s.reset(line); !s.atEnd(); {
		if !s.next(l) {
			if p.strict {
				break
			}
			continue
		}
		name := l.sanitized(s.key)
		if name == "" || indexOf(p.labels, name) < 0 && l.wasParsed(name) {
			continue
		}
		if i := indexOf(p.keys, name); i >= 0 {
			name = p.labels[i]
		} else if indexOf(p.labels, name) < 0 {
			continue
		}
		if l.taken(name) {
			if name = l.extracted(name); l.wasParsed(name) {
				break
			}
		}
		if extract.HasInvalid(s.value) {
			s.value = nil
		}
		l.setParsed(name, text(s.value))
	}
	if p.strict && s.failed() {
		l.fail(errLogfmt, s.problem())
	}
	return line, true
}
