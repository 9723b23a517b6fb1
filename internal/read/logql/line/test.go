package line

import (
	"bytes"
	"regexp"
)

// lineTest is a condition on the bytes of a line. It allocates nothing and may be used by several goroutines.
type lineTest interface {
	holds(line []byte) bool
}

type (
	always   struct{}
	nonEmpty struct{}
	anyOf    []lineTest
	hasBegin []byte
	hasEnd   []byte
	equals   []byte
)

func (always) holds([]byte) bool          { return true }
func (t hasBegin) holds(line []byte) bool { return bytes.HasPrefix(line, t) }
func (t hasEnd) holds(line []byte) bool   { return bytes.HasSuffix(line, t) }
func (t equals) holds(line []byte) bool   { return bytes.Equal(line, t) }

// nonEmpty is .+, which a line of nothing but newlines does not match.
func (nonEmpty) holds(line []byte) bool {
	for _, c := range line {
		if c != '\n' {
			return true
		}
	}
	return false
}

func (t anyOf) holds(line []byte) bool {
	for _, x := range t {
		if x.holds(line) {
			return true
		}
	}
	return false
}

// inOrder holds if the parts follow each other, with anything but newlines between them: foo.*bar.
type inOrder struct {
	parts []needle
	// whole is the expression, for lines with newlines in them.
	whole *regexp.Regexp
}

func (t *inOrder) holds(line []byte) bool {
	rest := line
	for i := range t.parts {
		at := t.parts[i].index(rest)
		if at < 0 {
			return false
		}
		rest = rest[at+len(t.parts[i].text):]
	}
	return bytes.IndexByte(line, '\n') < 0 || t.whole.Match(line)
}
